package registry

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecr"

	"github.com/pintle/pintle/internal/acs"
	service "github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
)

// blob answers with a layer, or a range of it, or tells its size.
func (g *Registry) blob(x *exchange) error {
	var err error
	switch {
	case x.Method == http.MethodHead:
		in := &ecr.BatchCheckLayerAvailabilityInput{RepositoryName: &x.name, LayerDigests: []string{x.rest}}
		err = g.allow(x, "BatchCheckLayerAvailability", in)
	case g.ecr.IsSigned(x.URL):
		err = g.ecr.Check(x.name)
	default:
		err = g.allow(x, "GetDownloadUrlForLayer", &ecr.GetDownloadUrlForLayerInput{RepositoryName: &x.name, LayerDigest: &x.rest})
	}
	if err != nil {
		return err
	}
	err = g.sendBlob(x)
	if !errors.Is(err, blobs.ErrNoBlob) || g.opts.Upstream == nil {
		return err
	}
	return g.sendComing(x)
}

// sendBlob answers with a layer that is here.
func (g *Registry) sendBlob(x *exchange) error {
	f, size, err := g.ecr.OpenLayer(x.name, x.rest)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it was read only
	if g.sendToPeer(x, size) {
		return nil
	}
	x.describeBlob()
	http.ServeContent(x.w, x.Request, "", time.Time{}, f)
	return nil
}

// minPeerLayer is how large a layer is that comes faster from a peer: another connection takes longer than a small one, such as a configuration.
const minPeerLayer = 64 << 10

// sendToPeer sends a node that may have a layer to another one that has it, or is about to.
func (g *Registry) sendToPeer(x *exchange, size int64) bool {
	token := x.Header.Get(acs.PeerToken)
	if g.opts.Peers == nil || x.Method != http.MethodGet || token == "" || size < minPeerLayer {
		return false
	}
	source := g.opts.Peers.Source(token, x.rest, x.Header.Get(acs.PeerFailed) != "")
	if source == nil {
		return false
	}
	h := x.w.Header()
	h.Set(acs.PeerCertificate, source.Certificate)
	h.Set("Location", source.URL)
	h.Set("Content-Length", "0")
	x.w.WriteHeader(http.StatusTemporaryRedirect)
	return true
}

func (x *exchange) describeBlob() {
	h := x.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Docker-Content-Digest", x.rest)
	h.Set("Etag", `"`+x.rest+`"`)
}

// sendComing answers with a layer that is on its way from another registry, as it comes.
func (g *Registry) sendComing(x *exchange) error {
	layer, err := g.opts.Upstream.Open(x.Context(), x.name, x.rest)
	if err != nil {
		return err
	}
	if layer == nil { // it may have arrived just now
		return g.sendBlob(x)
	}
	defer layer.Close() //nolint:errcheck // it was read only
	if g.sendToPeer(x, layer.Size) {
		return nil
	}
	x.describeBlob()
	x.w.Header().Set("Content-Length", strconv.FormatInt(layer.Size, 10))
	x.w.WriteHeader(http.StatusOK)
	if x.Method == http.MethodGet {
		io.Copy(x.w, layer) //nolint:errcheck // the client sees that bytes are missing
	}
	return nil
}

// begin begins an upload: of nothing yet, of a whole layer, or of one that another repository has.
func (g *Registry) begin(x *exchange) error {
	if err := g.allow(x, "InitiateLayerUpload", &ecr.InitiateLayerUploadInput{RepositoryName: &x.name}); err != nil {
		return err
	}
	query := x.URL.Query()
	if digest := query.Get("mount"); digest != "" && g.mount(x, query.Get("from"), digest) {
		return x.created(digest)
	}
	id, err := g.blobs.Begin(x.name)
	if err != nil {
		return err
	}
	if digest := query.Get("digest"); digest != "" && query.Get("mount") == "" {
		return g.complete(x, id, digest)
	}
	x.describe(id, 0)
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}

// mount gives the repository a layer of another one, if its caller may pull that. Otherwise the layer is uploaded.
func (g *Registry) mount(x *exchange, from, digest string) bool {
	if from == "" {
		return false
	}
	in := &ecr.GetDownloadUrlForLayerInput{RepositoryName: &from, LayerDigest: &digest}
	if g.opts.Allow(x.Context(), "GetDownloadUrlForLayer", in) != nil {
		return false
	}
	return g.ecr.MountLayer(x.Context(), from, x.name, digest) == nil
}

// describe says where an upload goes on, and how much of it there is.
func (x *exchange) describe(id string, size int64) {
	h := x.w.Header()
	h.Set("Location", Prefix+x.name+"/blobs/uploads/"+id)
	h.Set("Docker-Upload-Uuid", id)
	h.Set("Range", fmt.Sprintf("0-%d", max(size-1, 0)))
	h.Set("Content-Length", "0")
}

// created says where a layer is.
func (x *exchange) created(digest string) error {
	h := x.w.Header()
	h.Set("Location", service.LayerPath(x.name, digest))
	h.Set("Docker-Content-Digest", digest)
	h.Set("Content-Length", "0")
	x.w.WriteHeader(http.StatusCreated)
	return nil
}

// progress tells how much of an upload there is.
func (g *Registry) progress(x *exchange) error {
	if err := g.allow(x, "InitiateLayerUpload", &ecr.InitiateLayerUploadInput{RepositoryName: &x.name}); err != nil {
		return err
	}
	size, err := g.blobs.Size(x.name, x.rest)
	if err != nil {
		return err
	}
	x.describe(x.rest, size)
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// addChunk adds bytes to an upload.
func (g *Registry) addChunk(x *exchange) error {
	if err := g.allow(x, "UploadLayerPart", &ecr.UploadLayerPartInput{RepositoryName: &x.name, UploadId: &x.rest}); err != nil {
		return err
	}
	at, err := x.from()
	if err != nil {
		return err
	}
	size, err := g.blobs.Append(x.name, x.rest, at, x.Body)
	if err != nil {
		return torn(err)
	}
	x.describe(x.rest, size)
	x.w.WriteHeader(http.StatusAccepted)
	return nil
}

// torn returns the error of an upload whose connection broke: the client's, who can go on with it.
func torn(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return refuse(http.StatusBadRequest, "BLOB_UPLOAD_INVALID", "the connection ended before the bytes that were announced")
	}
	return err
}

// from returns the byte at which a chunk begins, or -1 if it follows what has come.
func (x *exchange) from() (int64, error) {
	text := x.Header.Get("Content-Range")
	if text == "" {
		return -1, nil
	}
	first, last, found := strings.Cut(strings.TrimPrefix(text, "bytes "), "-")
	last, _, _ = strings.Cut(last, "/")
	from, err := strconv.ParseInt(first, 10, 64)
	to, alsoErr := strconv.ParseInt(last, 10, 64)
	if !found || err != nil || alsoErr != nil || from < 0 || to < from || x.ContentLength >= 0 && to-from+1 != x.ContentLength {
		return 0, refuse(http.StatusBadRequest, "SIZE_INVALID", "Content-Range isn't that of the bytes: "+text)
	}
	return from, nil
}

// finish makes a layer of an upload, of which the last bytes may come with the request.
func (g *Registry) finish(x *exchange) error {
	in := &ecr.CompleteLayerUploadInput{RepositoryName: &x.name, UploadId: &x.rest}
	digest := x.URL.Query().Get("digest")
	in.LayerDigests = []string{digest}
	if err := g.allow(x, "CompleteLayerUpload", in); err != nil {
		return err
	}
	return g.complete(x, x.rest, digest)
}

func (g *Registry) complete(x *exchange, id, digest string) error {
	if blobs.CheckDigest(digest) != nil {
		return blobs.ErrAlgorithm
	}
	at, err := x.from()
	if err != nil {
		return err
	}
	if _, err := g.blobs.Append(x.name, id, at, x.Body); err != nil {
		return torn(err)
	}
	if err := g.ecr.FinishLayer(x.Context(), x.name, id, digest); err != nil {
		return err
	}
	return x.created(digest)
}

// cancel gives an upload up.
func (g *Registry) cancel(x *exchange) error {
	if err := g.allow(x, "InitiateLayerUpload", &ecr.InitiateLayerUploadInput{RepositoryName: &x.name}); err != nil {
		return err
	}
	if err := g.blobs.Cancel(x.name, x.rest); err != nil {
		return err
	}
	x.w.WriteHeader(http.StatusNoContent)
	return nil
}

// page cuts a sorted list to what a request asks for, and says where the next page is.
func page(x *exchange, all []string) ([]string, error) {
	query := x.URL.Query()
	size, err := strconv.Atoi(cmp.Or(query.Get("n"), "1000"))
	if err != nil || size < 0 {
		return nil, refuse(http.StatusBadRequest, "PAGINATION_NUMBER_INVALID", "invalid number of results requested")
	}
	if last := query.Get("last"); last != "" {
		for len(all) > 0 && all[0] <= last {
			all = all[1:]
		}
	}
	if size = min(size, 1000); len(all) <= size {
		return all, nil
	}
	if all = all[:size]; size > 0 {
		next := url.Values{"n": {strconv.Itoa(size)}, "last": {all[size-1]}}
		x.w.Header().Set("Link", "<"+x.URL.Path+"?"+next.Encode()+`>; rel="next"`)
	}
	return all, nil
}

// Package registry is how images are pushed to ECR and pulled from it: the API of OCI's distribution specification under /v2/, over the service's
// rows and blobs. It holds no body in memory but manifests', asks before each call whether its caller may do what ECR's API would have it do,
// and doesn't know who that is: plane does, and mounts it.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/disk"
	service "github.com/pintle/pintle/internal/ecr"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/ecr/peers"
	"github.com/pintle/pintle/internal/ecr/upstream"
)

// Options are what a registry asks.
type Options struct {
	// Allow refuses a call that stands for an operation of ECR's.
	Allow func(ctx context.Context, operation string, in any) error
	// Refusing is told before a request is refused whose body may not have been read.
	Refusing func(http.ResponseWriter, *http.Request)
	// Failed is told of errors that are no caller's fault.
	Failed func(error)
	// Upstream brings images from other registries; nil brings none.
	Upstream *upstream.Cache
	// Peers knows which nodes have which layers; nil sends nobody to them.
	Peers *peers.Book
}

// Registry answers requests below /v2/.
type Registry struct {
	ecr   *service.Service
	blobs *blobs.Store
	opts  Options
}

// New returns the registry of a service.
func New(s *service.Service, b *blobs.Store, opts Options) *Registry { return &Registry{s, b, opts} }

// Prefix is what all paths of a registry begin with.
const Prefix = "/v2/"

// exchange is a request and its answer.
type exchange struct {
	*http.Request

	w http.ResponseWriter

	name string // of the repository
	rest string // a tag, a digest or an upload's id
}

// route is a kind of path, with what each method does there.
type route struct {
	path    *regexp.Regexp
	methods map[string]func(*Registry, *exchange) error
}

// name is what a repository's name can be: anything that ECR has is shorter and plainer.
const name = `/v2/([a-z0-9][a-z0-9._/-]*)`

type methods = map[string]func(*Registry, *exchange) error

var routes = []route{
	{regexp.MustCompile(`^` + name + `/blobs/uploads/?()$`), methods{"POST": (*Registry).begin}},
	{regexp.MustCompile(`^` + name + `/blobs/uploads/([^/]+)$`), methods{
		"GET": (*Registry).progress, "PATCH": (*Registry).addChunk, "PUT": (*Registry).finish, "DELETE": (*Registry).cancel,
	}},
	{regexp.MustCompile(`^` + name + `/blobs/([^/]+)$`), methods{"GET": (*Registry).blob, "HEAD": (*Registry).blob}},
	{regexp.MustCompile(`^` + name + `/manifests/([^/]+)$`), methods{
		"GET": (*Registry).manifest, "HEAD": (*Registry).manifest, "PUT": (*Registry).putManifest, "DELETE": (*Registry).deleteManifest,
	}},
	{regexp.MustCompile(`^` + name + `/tags/list()$`), methods{"GET": (*Registry).tags}},
	{regexp.MustCompile(`^` + name + `/referrers/([^/]+)$`), methods{"GET": (*Registry).referrers}},
}

// ServeHTTP implements http.Handler.
func (g *Registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	x := &exchange{Request: r, w: w}
	if err := g.serve(x); err != nil {
		g.refuse(x, err)
	}
}

func (g *Registry) serve(x *exchange) error {
	if path := x.URL.Path; path == Prefix || path+"/" == Prefix {
		return x.writeJSON(http.StatusOK, "application/json", struct{}{})
	}
	for _, route := range routes {
		parts := route.path.FindStringSubmatch(x.URL.Path)
		if parts == nil {
			continue
		}
		x.name = parts[1]
		x.rest = parts[2]
		do := route.methods[x.Method]
		if do == nil {
			return refuse(http.StatusMethodNotAllowed, "UNSUPPORTED", "The operation is unsupported: "+x.Method)
		}
		return do(g, x)
	}
	return refuse(http.StatusNotFound, "UNSUPPORTED", "The operation is unsupported.")
}

// allow asks whether the caller may do to the repository what an operation does, and whether that is there.
func (g *Registry) allow(x *exchange, operation string, in any) error {
	if err := g.opts.Allow(x.Context(), operation, in); err != nil {
		return err
	}
	return g.ecr.Check(x.name)
}

// refusal is an error of the distribution specification.
type refusal struct {
	status  int
	code    string
	message string
}

func (r *refusal) Error() string { return r.message }

func refuse(status int, code, message string) error { return &refusal{status, code, message} }

// refuse answers with an error.
func (g *Registry) refuse(x *exchange, err error) {
	r := g.worded(err)
	g.opts.Refusing(x.w, x.Request)
	type fault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	if r.status == http.StatusRequestedRangeNotSatisfiable {
		x.w.Header().Set("Content-Length", "0")
		x.w.WriteHeader(r.status)
		return
	}
	x.writeJSON(r.status, "application/json", map[string][]fault{"errors": {{r.code, r.message}}}) //nolint:errcheck // nobody is left to tell
}

// codes are what the distribution specification calls ECR's errors.
var codes = map[string]refusal{
	"AccessDeniedException":             {status: http.StatusForbidden, code: "DENIED"},
	"ImageNotFoundException":            {status: http.StatusNotFound, code: "MANIFEST_UNKNOWN"},
	"ImageTagAlreadyExistsException":    {status: http.StatusBadRequest, code: "TAG_INVALID"},
	"InvalidParameterException":         {status: http.StatusBadRequest, code: "TAG_INVALID"},
	"LayersNotFoundException":           {status: http.StatusBadRequest, code: "MANIFEST_BLOB_UNKNOWN"},
	"LimitExceededException":            {status: http.StatusForbidden, code: "DENIED"},
	"ReferencedImagesNotFoundException": {status: http.StatusBadRequest, code: "MANIFEST_BLOB_UNKNOWN"},
	"RepositoryNotFoundException":       {status: http.StatusNotFound, code: "NAME_UNKNOWN"},
	"RequestTimeout":                    {status: http.StatusBadRequest, code: "BLOB_UPLOAD_INVALID"},
	"UploadNotFoundException":           {status: http.StatusNotFound, code: "BLOB_UPLOAD_UNKNOWN"},
}

// worded returns an error as the distribution specification has it.
func (g *Registry) worded(err error) *refusal {
	var own *refusal
	var api smithy.APIError
	var manifest *service.ErrManifest
	var gap *blobs.OutOfOrder
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &manifest):
		return &refusal{http.StatusBadRequest, "MANIFEST_INVALID", manifest.What}
	case errors.As(err, &gap):
		return &refusal{http.StatusRequestedRangeNotSatisfiable, "BLOB_UPLOAD_INVALID", gap.Error()}
	case errors.Is(err, blobs.ErrNoBlob):
		return &refusal{http.StatusNotFound, "BLOB_UNKNOWN", "blob unknown to registry"}
	case errors.Is(err, upstream.ErrNotThere):
		return &refusal{http.StatusNotFound, "MANIFEST_UNKNOWN", err.Error()}
	case errors.Is(err, upstream.ErrBusy):
		return &refusal{http.StatusTooManyRequests, "TOOMANYREQUESTS", err.Error()}
	case errors.Is(err, upstream.ErrUnreachable):
		return &refusal{http.StatusBadGateway, "UNAVAILABLE", err.Error()}
	case errors.Is(err, blobs.ErrNoUpload):
		return &refusal{http.StatusNotFound, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry"}
	case errors.Is(err, blobs.ErrDigest), errors.Is(err, blobs.ErrAlgorithm):
		return &refusal{http.StatusBadRequest, "DIGEST_INVALID", err.Error()}
	case errors.Is(err, blobs.ErrTooLarge), errors.Is(err, blobs.ErrTooMany):
		return &refusal{http.StatusForbidden, "DENIED", err.Error()}
	case disk.IsUnwritable(err):
		return &refusal{http.StatusServiceUnavailable, "UNAVAILABLE", err.Error()}
	case errors.As(err, &api):
		if r, known := codes[api.ErrorCode()]; known {
			r.message = api.ErrorMessage()
			return &r
		}
	}
	g.opts.Failed(err)
	return &refusal{http.StatusInternalServerError, "UNKNOWN", "The request failed inside Pintle. Its log has the reason."}
}

// writeJSON answers with a JSON value.
func (x *exchange) writeJSON(status int, mediaType string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	x.w.Header().Set("Content-Type", mediaType)
	x.w.WriteHeader(status)
	x.w.Write(body) //nolint:errcheck // nobody is left to tell if the client is gone
	return nil
}

// pulls returns the input of BatchGetImage for a reference.
func (x *exchange) pulls() *ecr.BatchGetImageInput {
	return &ecr.BatchGetImageInput{RepositoryName: &x.name, ImageIds: []types.ImageIdentifier{x.id()}}
}

// id returns what a path says of an image.
func (x *exchange) id() types.ImageIdentifier {
	if strings.Contains(x.rest, ":") {
		return types.ImageIdentifier{ImageDigest: &x.rest}
	}
	return types.ImageIdentifier{ImageTag: &x.rest}
}

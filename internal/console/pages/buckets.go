package pages

import (
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/wire/steady"
)

// objectsOfAPage is how many objects and prefixes a page shows.
const objectsOfAPage = 200

// bucketsView lists buckets.
func (p *Pages) bucketsView() view {
	return view{
		path:  "/console/buckets",
		nav:   "Buckets",
		title: func(*visit) string { return "Buckets" },
		body:  bucketsBody,
		every: often,
	}
}

func bucketsBody(v *visit) ([]live.Fragment, error) {
	out, err := ask[s3.ListBucketsOutput](v, &s3.ListBucketsInput{})
	if err != nil {
		return nil, err
	}
	var rows []markup.Node
	for _, b := range out.Buckets {
		rows = append(rows, row(link(to("buckets", *b.Name), *b.Name), moment(b.CreationDate)))
	}
	return []live.Fragment{section("buckets", "Buckets", table("Buckets", columns("Bucket", "Created"), rows...))}, nil
}

// bucketView shows the objects below a prefix.
func (p *Pages) bucketView() view {
	return view{
		path:  "/console/buckets/{bucket}",
		title: func(v *visit) string { return "Bucket " + v.path("bucket") },
		head:  bucketHead,
		body:  bucketBody,
		every: often,
		gets:  map[string]func(http.ResponseWriter, *visit){"/console/object/{bucket}": downloadObject},
	}
}

func bucketHead(v *visit) (markup.Node, error) {
	bucket, prefix := v.path("bucket"), v.query("prefix")
	trail := []markup.Node{link(to("buckets", bucket), bucket)}
	at := ""
	for part := range strings.SplitAfterSeq(prefix, "/") {
		if at += part; part != "" {
			trail = append(trail, markup.Text(" "), link(with(to("buckets", bucket), "prefix", at), part))
		}
	}
	var upload markup.Node
	if v.mayAct() {
		upload = markup.E("form", markup.A("method", "post"), markup.A("enctype", "multipart/form-data"), markup.A("action", to("upload", bucket)),
			markup.E("input", markup.A("type", "hidden"), markup.A("name", "prefix"), markup.A("value", prefix)),
			field("Upload", "file", "file", "", markup.If("required", true)), markup.E("button", "Upload"))
	}
	return markup.E("div", markup.Class("tools"), markup.E("nav", markup.A("aria-label", "Prefix"), trail), upload), nil
}

func bucketBody(v *visit) ([]live.Fragment, error) {
	bucket, prefix := v.path("bucket"), v.query("prefix")
	in := &s3.ListObjectsV2Input{Bucket: &bucket, Delimiter: aws.String("/"), MaxKeys: aws.Int32(objectsOfAPage)}
	if prefix != "" {
		in.Prefix = &prefix
	}
	if after := v.query("after"); after != "" {
		in.ContinuationToken = &after
	}
	out, err := ask[s3.ListObjectsV2Output](v, in)
	if err != nil {
		return nil, err
	}
	var rows []markup.Node
	for _, p := range out.CommonPrefixes {
		rows = append(rows, row(link(with(to("buckets", bucket), "prefix", *p.Prefix), strings.TrimPrefix(*p.Prefix, prefix)), "", ""))
	}
	for _, o := range out.Contents {
		rows = append(rows, row(link(with(to("object", bucket), "key", *o.Key), strings.TrimPrefix(*o.Key, prefix)), int(aws.ToInt64(o.Size)), moment(o.LastModified)))
	}
	var more markup.Node
	if out.NextContinuationToken != nil {
		more = link(with(to("buckets", bucket), "prefix", prefix, "after", *out.NextContinuationToken), "More")
	}
	return []live.Fragment{section("objects", "Objects", table("Objects and prefixes", columns("Key", "#Bytes", "Modified"), rows...), more)}, nil
}

// downloadObject answers with an object, which the browser saves: it may be a page with scripts.
func downloadObject(w http.ResponseWriter, v *visit) {
	out, err := ask[s3.GetObjectOutput](v, &s3.GetObjectInput{Bucket: aws.String(v.path("bucket")), Key: aws.String(v.query("key"))})
	if err != nil {
		status, text := sayOf(err)
		v.pages.refuse(w, status, text)
		return
	}
	defer out.Body.Close() //nolint:errcheck // it was read
	attach(w, path.Base(v.query("key")))
	io.Copy(w, out.Body) //nolint:errcheck // nobody is left to tell
}

// serveUpload puts a file into a bucket. The form's fields come in order, the file last, so it's never held in memory.
func (p *Pages) serveUpload(w http.ResponseWriter, v *visit) {
	form, err := v.r.MultipartReader()
	if err != nil {
		p.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	fields := map[string]string{}
	for {
		part, err := form.NextPart()
		if err != nil {
			p.refuse(w, http.StatusBadRequest, "The form has no file.")
			return
		}
		if part.FormName() == "file" {
			p.upload(w, v, fields, part.FileName(), part)
			return
		}
		b, err := io.ReadAll(io.LimitReader(part, maxForm))
		if err != nil {
			p.refuse(w, http.StatusBadRequest, err.Error())
			return
		}
		if len(fields) < 8 {
			fields[part.FormName()] = string(b)
		}
	}
}

func (p *Pages) upload(w http.ResponseWriter, v *visit, fields map[string]string, name string, body io.Reader) {
	if !v.session.Knows(fields["token"]) || p.opts.ReadOnly {
		p.refuse(w, http.StatusForbidden, "The form didn't come from one of the console's pages, or the console is read-only.")
		return
	}
	steady.Relax(v.r) // as for a client of S3's
	bucket, key := v.path("bucket"), fields["prefix"]+name
	if _, err := ask[s3.PutObjectOutput](v, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: body}); err != nil {
		status, text := sayOf(err)
		p.show(w, v, status, document{title: "Not uploaded", content: failure(text)})
		return
	}
	http.Redirect(w, v.r, with(to("buckets", bucket), "prefix", fields["prefix"]), http.StatusSeeOther)
}

package rest

import (
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/awsname"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/postpolicy"
	"github.com/pintle/pintle/internal/wire/refusal"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/steady"
)

// A web page's form uploads an object with a POST of its bucket: https://docs.aws.amazon.com/AmazonS3/latest/API/RESTObjectPOST.html
// Its fields are what a PutObject has in headers, with the key, a policy, and the policy's signature. So it becomes a PutObject here, once
// the signature and the policy have been checked, and the file is streamed as an object's body is.

// form is what a form says.
type form struct {
	fields map[string]string // by name, in small letters
	file   io.Reader
}

// maxFields is the most bytes of a request's body before the file. They are read before it's known who sends them, at the pace of calls; S3
// takes 20 KB of fields.
const maxFields = 32 << 10

// isForm reports whether a request is an upload by a form.
func isForm(r *http.Request, t target) bool {
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return r.Method == http.MethodPost && mediaType == "multipart/form-data" && t.bucket != "" && t.key == ""
}

// openForm reads a form as far as its file, checks its signature and its policy, and makes a PutObject of the request.
func (q *request) openForm(v *sign.Verifier) (sign.Caller, error) {
	if q.ContentLength < 0 {
		return sign.Caller{}, refusal.With(http.StatusLengthRequired, "MissingContentLength", "You must provide the Content-Length HTTP header.")
	}
	f := q.form
	if err := q.readForm(); err != nil {
		return sign.Caller{}, err
	}
	caller, err := sign.VerifyForm(v, q.Request, q.api.Name, f.fields)
	if err != nil {
		return caller, err
	}
	size, err := f.checkPolicy(q.labels["Bucket"], v.Time())
	if err != nil {
		return caller, err
	}
	steady.Relax(q.Request)
	q.body = &requestBody{length: -1, content: &sized{from: f.file, allowed: size}}
	return caller, q.becomePut()
}

// readForm reads a form's fields.
func (q *request) readForm() error {
	_, params, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return malformedForm(nil)
	}
	f := q.form
	f.fields = map[string]string{}
	head := &head{q: q}
	parts := multipart.NewReader(head, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return invalidField("file", "0", "POST requires exactly one file upload per request.")
		}
		if err != nil {
			return malformedForm(err)
		}
		name := strings.ToLower(part.FormName())
		if name == "file" {
			head.passed = true
			f.file = part
			f.substitute(fileName(part.FileName()))
			return f.checkKey()
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return malformedForm(err)
		}
		if _, twice := f.fields[name]; twice || !fieldNames.MatchString(name) {
			return malformedForm(nil)
		}
		f.fields[name] = string(value)
	}
}

// fieldNames matches what can be a header's name. Fields of metadata become headers of the object.
var fieldNames = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9a-z]+$")

// head reads a form as far as its file, which is all of it that's kept in memory.
type head struct {
	q      *request
	read   int64
	passed bool // the file has begun
}

var errFieldsTooLarge = refusal.New("MaxPostPreDataLengthExceededError", "Your POST request fields preceding the upload file were too large.")

// Read implements io.Reader.
func (h *head) Read(p []byte) (int, error) {
	if h.passed {
		return h.q.Body.Read(p)
	}
	p = p[:min(int64(len(p)), maxFields-h.read)]
	if len(p) == 0 {
		return 0, errFieldsTooLarge
	}
	if err := h.q.memory.Hold(h.q.Context(), h.read+int64(len(p))); err != nil {
		return 0, err
	}
	n, err := h.q.Body.Read(p)
	h.read += int64(n)
	return n, err
}

// malformedForm returns what a form that can't be read is refused with. The connection's own failures stay what they are.
func malformedForm(err error) error {
	var known *refusal.Refusal
	if errors.As(err, &known) {
		return known
	}
	return refusal.New("MalformedPOSTRequest", "The body of your POST request is not well-formed multipart/form-data.")
}

// fieldError is a refusal that names a field.
type fieldError struct {
	*refusal.Refusal
	detail map[string]string
}

// Detail returns more elements of the answer.
func (e *fieldError) Detail() map[string]string { return e.detail }

func refuseWith(detail map[string]string, status int, code, format string, args ...any) error {
	r := refusal.With(status, code, format, args...).(*refusal.Refusal)
	return &fieldError{r, detail}
}

func invalidField(name, value, format string, args ...any) error {
	return refuseWith(map[string]string{"ArgumentName": name, "ArgumentValue": value}, http.StatusBadRequest, "InvalidArgument", format, args...)
}

// fileName returns the last part of a file's name, which some browsers send with its path.
func fileName(name string) string { return name[strings.LastIndexAny(name, `/\`)+1:] }

// substitute puts the file's name into the fields that ask for it.
func (f *form) substitute(name string) {
	for field, value := range f.fields {
		f.fields[field] = strings.ReplaceAll(value, "${filename}", name)
	}
}

func (f *form) checkKey() error {
	if _, ok := f.fields["key"]; !ok {
		return invalidField("key", "", "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields.")
	}
	return nil
}

// checkPolicy checks a form's fields by its policy, and returns how large the file may be. Without a policy anything may be in a form.
func (f *form) checkPolicy(bucket string, now time.Time) (postpolicy.Range, error) {
	encoded, ok := f.fields["policy"]
	if !ok {
		return postpolicy.Any, nil
	}
	p, err := postpolicy.Parse(encoded)
	if err != nil {
		return postpolicy.Any, refusal.New("InvalidPolicyDocument", "Invalid Policy: %s", err)
	}
	if err := p.Check(now, bucket, f.fields); err != nil {
		return postpolicy.Any, refusal.With(http.StatusForbidden, "AccessDenied", "Invalid according to Policy: %s", err)
	}
	return p.Size, nil
}

// sized reads a file, which must have a size in a policy's range.
type sized struct {
	from    io.Reader
	size    int64
	allowed postpolicy.Range
}

// Read implements io.Reader.
func (s *sized) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	s.size += int64(n)
	switch {
	case s.size > s.allowed.Most:
		return n, s.refuse("EntityTooLarge", "exceeds the maximum", "MaxSizeAllowed", s.allowed.Most)
	case err == io.EOF && s.size < s.allowed.Least:
		return n, s.refuse("EntityTooSmall", "is smaller than the minimum", "MinSizeAllowed", s.allowed.Least)
	}
	return n, err
}

func (s *sized) refuse(code, how, limit string, bytes int64) error {
	return refuseWith(map[string]string{
		"ProposedSize": strconv.FormatInt(s.size, 10),
		limit:          strconv.FormatInt(bytes, 10),
	}, http.StatusBadRequest, code, "Your proposed upload %s allowed size", how)
}

// headersOfFields are the fields, besides those of Amazon's own, that are headers of a PutObject.
var headersOfFields = []string{
	"cache-control", "content-disposition", "content-encoding", "content-language", "content-md5", "content-type", "expires",
}

// becomePut makes the request a PutObject: the form's fields are its headers, and nothing else of the request counts, since no policy covers it.
func (q *request) becomePut() error {
	header := http.Header{}
	for name, value := range q.form.fields {
		switch {
		case name == "acl":
			header.Set("X-Amz-Acl", value)
		case name == "tagging":
			tags, err := tagsOf(value)
			if err != nil {
				return err
			}
			header.Set("X-Amz-Tagging", tags)
		case strings.HasPrefix(name, "x-amz-"), slices.Contains(headersOfFields, name):
			header.Set(name, value)
		}
	}
	header["Expect"] = q.Header["Expect"]
	put := new(*q.Request)
	put.Header = header
	q.Request = put
	q.query = url.Values{}
	q.labels["Key"] = q.form.fields["key"]
	return nil
}

// tagsOf returns the tags in the XML of the field tagging as the header has them.
func tagsOf(text string) (string, error) {
	var tagging struct {
		XMLName xml.Name                      `xml:"Tagging"`
		Tags    []struct{ Key, Value string } `xml:"TagSet>Tag"`
	}
	if err := xml.Unmarshal([]byte(text), &tagging); err != nil {
		return "", refusal.New("MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema.")
	}
	values := url.Values{}
	for _, t := range tagging.Tags {
		values.Add(t.Key, t.Value)
	}
	return values.Encode(), nil
}

// answerForm answers an upload by a form, as the form asks: with a redirect to a page, which is told of the object, or with a status.
func (q *request) answerForm() {
	bucket, key, etag := q.labels["Bucket"], q.labels["Key"], q.w.Header().Get("Etag")
	if to, err := url.Parse(cmp.Or(q.form.fields["success_action_redirect"], q.form.fields["redirect"])); err == nil && to.IsAbs() {
		about := url.Values{"bucket": {bucket}, "key": {key}, "etag": {etag}}.Encode()
		to.RawQuery = strings.TrimPrefix(to.RawQuery+"&"+about, "&")
		q.w.Header().Set("Location", to.String())
		q.send(http.StatusSeeOther, "", nil)
		return
	}
	location := call.EndpointOf(q.Request) + "/"
	if awsname.BucketOf(q.Host) == "" {
		location += bucket + "/"
	}
	location += url.PathEscape(key)
	q.w.Header().Set("Location", location)
	switch q.form.fields["success_action_status"] {
	case "200":
		q.send(http.StatusOK, "", nil)
	case "201":
		e := codec.XML{B: []byte(xmlHeader)}
		e.Open("PostResponse")
		e.Element("Location", location)
		e.Element("Bucket", bucket)
		e.Element("Key", key)
		e.Element("ETag", etag)
		e.Close("PostResponse")
		q.send(http.StatusCreated, q.api.Style.mediaType(), e.B)
	default:
		q.send(http.StatusNoContent, "", nil)
	}
}

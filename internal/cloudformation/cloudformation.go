// Package cloudformation is AWS CloudFormation: a Service with the methods of the SDK's client. It reads templates and says what is in them
// and what is wrong with them, and keeps the rows of stacks and change sets. Package stacks makes what they say. It knows nothing of HTTP.
package cloudformation

import (
	"context"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// Objects holds templates that are too long for a call. It's Amazon S3.
type Objects interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// Options are what the service needs of others.
type Options struct {
	Account  account.Account
	Objects  Objects
	Services call.Caller // for parameters whose values are kept elsewhere
	// Assume returns who CloudFormation is with a role. It's nil where no policies bind, so that nobody has less than all.
	Assume func(role string) (call.Identity, error)
}

// Service is CloudFormation for one account in one region.
type Service struct {
	opts  Options
	store *state.Store
	loop  *stacks.Loop
}

// New returns the service. The loop carries out what it begins.
func New(store *state.Store, loop *stacks.Loop, opts Options) *Service {
	return &Service{opts, store, loop}
}

// The most bytes of a template in a call, and of one in a bucket.
const (
	maxBody   = 51_200
	maxObject = 1 << 20
)

// invalid returns the error that CloudFormation answers nearly everything with that is wrong with a call.
func invalid(format string, args ...any) error {
	return &smithy.GenericAPIError{Code: "ValidationError", Message: *account.Message(format, args...), Fault: smithy.FaultClient}
}

// parse reads the template of a call, which holds it or says where it is.
func (s *Service) parse(ctx context.Context, body, location *string) (*template.Template, error) {
	text, err := s.text(ctx, body, location)
	if err != nil {
		return nil, err
	}
	t, err := template.Parse(text)
	var wrong *template.Error
	if errors.As(err, &wrong) {
		return nil, invalid("%s", wrong.Message)
	}
	return t, err
}

func (s *Service) text(ctx context.Context, body, location *string) ([]byte, error) {
	switch {
	case body != nil && location != nil:
		return nil, invalid("You cannot specify both TemplateBody and TemplateURL")
	case location != nil:
		return s.object(ctx, *location)
	case body == nil:
		return nil, invalid("Either Template URL or Template Body must be specified.")
	case len(*body) > maxBody:
		return nil, invalid("1 validation error detected: Value at 'templateBody' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", maxBody)
	}
	return []byte(*body), nil
}

// object reads a template from a bucket here, wherever its URL leads: nothing is fetched from elsewhere. That the caller may was checked with
// the call, which has the URL.
func (s *Service) object(ctx context.Context, location string) ([]byte, error) {
	return objectAt(location, func(in *s3.GetObjectInput) (*s3.GetObjectOutput, error) { return s.opts.Objects.GetObject(ctx, in) })
}

// objectAsCaller is object for a URL that isn't the call's own.
func (s *Service) objectAsCaller(ctx context.Context, location string) ([]byte, error) {
	return objectAt(location, func(in *s3.GetObjectInput) (*s3.GetObjectOutput, error) {
		return call.Do[s3.GetObjectOutput](ctx, s.opts.Services, in)
	})
}

// objectAt reads the object that a template's URL names.
func objectAt(location string, get func(*s3.GetObjectInput) (*s3.GetObjectOutput, error)) ([]byte, error) {
	bucket, key := place(location)
	if bucket == "" || key == "" {
		return nil, invalid("TemplateURL must be a supported URL.")
	}
	out, err := get(&s3.GetObjectInput{Bucket: &bucket, Key: &key})
	var refused smithy.APIError
	if errors.As(err, &refused) {
		return nil, invalid("S3 error: %s", refused.ErrorMessage())
	}
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	if size := aws.ToInt64(out.ContentLength); size > maxObject {
		return nil, invalid("Template may not exceed %d bytes in size.", maxObject)
	}
	return io.ReadAll(io.LimitReader(out.Body, maxObject))
}

// place returns the bucket and the key that a URL names: by host, as BUCKET.s3.REGION.amazonaws.com/KEY, or by path, on any other host.
func place(location string) (bucket, key string) {
	u, err := url.Parse(location)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return "", ""
	}
	path := strings.TrimPrefix(u.Path, "/")
	if host, isAWS := strings.CutSuffix(u.Hostname(), ".amazonaws.com"); isAWS {
		if i := strings.LastIndex(host, ".s3"); i > 0 {
			return host[:i], path
		}
	}
	bucket, key, _ = strings.Cut(path, "/")
	return bucket, key
}

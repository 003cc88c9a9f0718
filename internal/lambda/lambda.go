// Package lambda is AWS Lambda: functions with their versions, aliases, layers and permissions, their invocations, and event source mappings
// of queues. A Service has the methods of the SDK's client, over the store. It starts nothing: invocations go to the Runner that it is handed,
// and package zips keeps the code.
package lambda

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/lambda/environments"
	"github.com/pintle/pintle/internal/lambda/zips"
	"github.com/pintle/pintle/internal/state"
)

// Buckets is where code may lie: S3.
type Buckets interface {
	GetObject(context.Context, *s3.GetObjectInput, ...func(*s3.Options)) (*s3.GetObjectOutput, error)
}

// Queues is where dead letters and results go: SQS.
type Queues interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

// Sources are the queues of event source mappings: SQS.
type Sources interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// Topics is where else they go: SNS.
type Topics interface {
	Publish(context.Context, *sns.PublishInput, ...func(*sns.Options)) (*sns.PublishOutput, error)
}

// Runner runs functions: an environments.Manager.
type Runner interface {
	Do(context.Context, environments.Work) (environments.Result, error)
}

// Options are the account of the service, and whom it calls.
type Options struct {
	account.Account
	Zips     *zips.Store
	Buckets  Buckets
	Images   Images
	Queues   Queues
	Sources  Sources
	Topics   Topics
	QueueURL func(arn string) string
	Runner   Runner
	Storage  int64                    // how many bytes of code there may be; 0 means 75 GB, as on AWS
	Endpoint string                   // the control plane's URL
	MAC      func(text string) []byte // seals the URLs of code
	Trusts   func(role string) bool   // whether Lambda may assume a role; nil if it may assume any
	// Measure adds a value to a metric by each list of dimensions, in which names and values take turns; nil measures nothing.
	Measure func(namespace, metric, unit string, value float64, by ...[]string)
	Log     *slog.Logger
}

// Service is AWS Lambda for one account in one region.
type Service struct {
	store *state.Store
	opts  Options
	large chan struct{} // has as many places as there may be zip files of buckets in memory

	unused int64 // how many bytes of code may stay that nothing has
}

// maxLarge is how many zip files of buckets are in memory at once. Each may have 250 MB, and those in calls have their requests' budget.
const maxLarge = 2

// New returns the service over the store.
func New(store *state.Store, opts Options) *Service {
	if opts.Log == nil {
		opts.Log = slog.Default()
	}
	if opts.Storage == 0 {
		opts.Storage = maxStored
	}
	return &Service{store, opts, make(chan struct{}, maxLarge), maxUnused}
}

func invalid(format string, args ...any) error {
	return account.Refuse("InvalidParameterValueException", format, args...)
}

func notFound(format string, args ...any) error {
	return account.Refuse("ResourceNotFoundException", format, args...)
}

func conflict(format string, args ...any) error {
	return account.Refuse("ResourceConflictException", format, args...)
}

// modified is the layout of LastModified.
const modified = "2006-01-02T15:04:05.000+0000"

func (s *Service) lastModified() *string { return new(s.opts.Now().UTC().Format(modified)) }

func (s *Service) second() *time.Time { return new(s.opts.Now().UTC().Truncate(time.Second)) }

// functionARN returns the ARN of a function, with a qualifier unless that is "".
func (s *Service) functionARN(name, qualifier string) string {
	if qualifier != "" {
		name += ":" + qualifier
	}
	return s.opts.ARN("lambda", "function:"+name)
}

// target reads a function's name as calls may give it: alone, in an ARN or in a part of one, each with or without a qualifier.
func (s *Service) target(given, qualifier *string) (name, suffix string, err error) {
	text := aws.ToString(given)
	if full, is := strings.CutPrefix(text, s.opts.ARN("lambda", "function:")); is {
		text = full
	} else if part, is := strings.CutPrefix(text, s.opts.ID+":function:"); is {
		text = part
	} else if part, is := strings.CutPrefix(text, "function:"); is {
		text = part
	} else if strings.HasPrefix(text, "arn:") {
		return "", "", notFound("Function not found: %s", text)
	}
	name, suffix, _ = strings.Cut(text, ":")
	if q := aws.ToString(qualifier); q != "" {
		if suffix != "" && suffix != q {
			return "", "", invalid("The derived qualifier from the function name does not match the specified qualifier.")
		}
		suffix = q
	}
	return name, suffix, nil
}

// function returns the function that a call names.
func (s *Service) function(v *state.View, name string) (*state.Function, error) {
	f := v.Functions.Get(name)
	if f == nil {
		return nil, notFound("Function not found: %s", s.functionARN(name, ""))
	}
	return f, nil
}

// version returns the version of a function that a qualifier stands for: a version, an alias, or none for the latest.
func (s *Service) version(v *state.View, name, qualifier string) (*state.FunctionVersion, error) {
	number := qualifier
	if number == "" {
		number = state.Latest
	}
	if a := v.FunctionAliases.Get(state.FunctionKey(name, number)); a != nil {
		number = pick(&a.AliasConfiguration)
	}
	row := v.FunctionVersions.Get(state.FunctionKey(name, number))
	if row == nil {
		return nil, notFound("Function not found: %s", s.functionARN(name, qualifier))
	}
	return row, nil
}

// update changes a function's row and its latest version in a transaction. change gets copies.
func (s *Service) update(
	ctx context.Context, given *string, change func(tx *state.Tx, f *state.Function, latest *state.FunctionVersion) error,
) (c types.FunctionConfiguration, err error) {
	name, _, err := s.target(given, nil)
	if err != nil {
		return c, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.function(tx.View, name)
		if err != nil {
			return err
		}
		before := stored(tx.View)
		f := *old
		latest := *tx.FunctionVersions.Get(state.FunctionKey(name, state.Latest))
		if err := change(tx, &f, &latest); err != nil {
			return err
		}
		tx.Functions.Put(&f)
		tx.FunctionVersions.Put(&latest)
		c = latest.FunctionConfiguration
		if stored(tx.View) > before {
			return s.checkStored(tx)
		}
		return nil
	})
	return c, err
}

// checkRevision refuses a change of what has changed since the caller looked.
func checkRevision(given, is *string) error {
	if given != nil && *given != aws.ToString(is) {
		return account.Refuse("PreconditionFailedException", "The Revision Id provided does not match the latest Revision Id. Call the "+
			"GetFunction/GetAlias API to retrieve the latest Revision Id")
	}
	return nil
}

// shown returns a row, such as a configuration, as the answer of one of the operations that have its members.
func shown[Out any](c any) *Out {
	out := new(Out)
	from, to := reflect.ValueOf(c), reflect.ValueOf(out).Elem()
	for i := range from.NumField() {
		if f := from.Type().Field(i); f.IsExported() {
			to.FieldByName(f.Name).Set(from.Field(i))
		}
	}
	return out
}

// page sorts rows by their keys, and returns a page of them.
func page[R any](kind string, rows []R, most *int32, marker *string, key func(R) string) ([]R, *string, error) {
	account.SortBy(rows, key)
	rows, next, err := account.Sorted(account.List{
		Kind:     "lambda " + kind,
		Default:  50,
		Most:     10000,
		BadLimit: func(n int) error { return invalid("MaxItems must be from 1 to 10000, not %d.", n) },
		BadToken: func() error { return invalid("Marker is not one of an earlier answer.") },
	}, rows, most, marker, key)
	return append([]R{}, rows...), next, err
}

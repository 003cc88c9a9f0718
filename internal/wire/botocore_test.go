package wire

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/acm"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	aastypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudcontrol"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/efs"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/codec"
	"github.com/pintle/pintle/internal/wire/model"
)

// serviceModel is botocore's model of a service.
type serviceModel struct {
	Operations map[string]struct {
		Input, Output struct{ Shape string }
		Errors        []struct{ Shape string }
	}
	Shapes map[string]modelShape
}

type modelShape struct {
	Type        string
	Members     map[string]modelRef
	Member      modelRef // of a list
	Value       modelRef // of a map
	Payload     string
	Exception   bool
	Error       struct{ Code string } // of an exception
	Document    bool
	EventStream bool
}

type modelRef struct {
	Shape        string
	Location     string
	LocationName string
	QueryName    string
	XMLAttribute bool `json:"xmlAttribute"`
}

// botocoreFolder returns the folder where botocore is installed.
var botocoreFolder = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import botocore; print(botocore.__path__[0])").Output()
	return strings.TrimSpace(string(out)), err
})

// botocore reads a service's model from the botocore package that comes with the AWS CLI.
func botocore(t *testing.T, service string) *serviceModel {
	t.Helper()
	dir, err := botocoreFolder()
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("botocore is not installed: %v", err)
	}
	if err != nil {
		t.Skip("botocore is not installed; in CI it is")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "data", service, "*", "service-2.json.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("botocore has no %s: %v", service, err)
	}
	f, err := os.Open(paths[len(paths)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // the file was only read
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	m := new(serviceModel)
	if err := json.NewDecoder(z).Decode(m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestNamesMatchBotocore compares our wire names with botocore's models, for every member of every operation's input, output and
// errors.
func TestNamesMatchBotocore(t *testing.T) {
	for _, c := range []struct {
		folder string
		api    model.API
		client any
		errors []any
		least  int // how many members must be compared at least
	}{
		{"ecs", ECS(nil), &ecs.Client{}, registered(ecs.TypeRegistry), 1000},
		{"logs", Logs(nil), &cloudwatchlogs.Client{}, registered(cloudwatchlogs.TypeRegistry), 800},
		{"iam", IAM(nil), &iam.Client{}, nil, 800},
		{"sts", STS(nil), &sts.Client{}, nil, 80},
		{"cloudwatch", CloudWatch(nil), &cloudwatch.Client{}, registered(cloudwatch.TypeRegistry), 300},
		{"application-autoscaling", ApplicationAutoScaling(nil), &applicationautoscaling.Client{}, []any{
			&aastypes.ConcurrentUpdateException{}, &aastypes.FailedResourceAccessException{}, &aastypes.InternalServiceException{},
			&aastypes.InvalidNextTokenException{}, &aastypes.LimitExceededException{}, &aastypes.ObjectNotFoundException{},
			&aastypes.ResourceNotFoundException{}, &aastypes.TooManyTagsException{}, &aastypes.ValidationException{},
		}, 150},
		{"autoscaling", AutoScaling(nil), &autoscaling.Client{}, nil, 500},
		{"ec2", EC2(nil), &ec2.Client{}, nil, 9000},
		{"sqs", SQS(nil), &sqs.Client{}, registered(sqs.TypeRegistry), 100},
		{"ecr", ECR(nil), &ecr.Client{}, ecrErrors, 300},
		{"secretsmanager", SecretsManager(nil), &secretsmanager.Client{}, secretsManagerErrors, 150},
		{"ssm", SSM(nil), &ssm.Client{}, ssmErrors, 2000},
		{"s3", S3(nil), &s3.Client{}, nil, 1000},
		{"cloudformation", CloudFormation(nil), &cloudformation.Client{}, nil, 500},
		{"acm", ACM(nil), &acm.Client{}, nil, 100},
		{"cloudcontrol", CloudControl(nil), &cloudcontrol.Client{}, nil, 50},
		{"efs", EFS(nil), &efs.Client{}, nil, 150},
		{"elbv2", ELB(nil), &elasticloadbalancingv2.Client{}, nil, 200},
		{"events", Events(nil), &eventbridge.Client{}, nil, 300},
		{"lambda", Lambda(nil), &lambda.Client{}, nil, 300},
		{"scheduler", Scheduler(nil), &scheduler.Client{}, nil, 100},
		{"servicediscovery", ServiceDiscovery(nil), &servicediscovery.Client{}, nil, 150},
		{"sns", SNS(nil), &sns.Client{}, nil, 100},
	} {
		t.Run(c.folder, func(t *testing.T) {
			w := walk{
				t:      t,
				api:    &c.api,
				model:  botocore(t, c.folder),
				shapes: codec.NewShapes(rulesOf(&c.api)),
				seen:   map[visit]bool{},
			}
			w.operations(reflect.TypeOf(c.client))
			if c.errors != nil {
				w.errors(c.errors)
			}
			if w.compared < c.least {
				t.Errorf("compared only %d members", w.compared)
			}
		})
	}
}

// registered returns the errors of an SDK package that has a type registry.
func registered(types *smithy.TypeRegistry) (errors []any) {
	for _, entry := range types.Entries {
		if e, ok := entry.New().(smithy.APIError); ok {
			errors = append(errors, e)
		}
	}
	return errors
}

// walk visits a service's model and the shapes of the SDK's structs side by side.
type walk struct {
	t        *testing.T
	api      *model.API
	model    *serviceModel
	shapes   *codec.Shapes
	seen     map[visit]bool
	compared int
}

type visit struct {
	name    string
	sh      *codec.Shape
	request bool
}

func (w *walk) operations(client reflect.Type) {
	known := 0
	for name, o := range w.model.Operations {
		m, ok := client.MethodByName(name)
		if !ok {
			continue // the SDK doesn't have it yet
		}
		known++
		if o.Input.Shape != "" {
			w.compare(name, o.Input.Shape, w.shapes.Of(m.Type.In(2).Elem()), true)
		}
		if o.Output.Shape != "" {
			w.compare(name, o.Output.Shape, w.shapes.Of(m.Type.Out(0).Elem()), false)
		}
	}
	if known < len(w.model.Operations)*9/10 {
		w.t.Errorf("the SDK has %d of botocore's %d operations", known, len(w.model.Operations))
	}
}

func (w *walk) errors(errors []any) {
	found := map[string]bool{}
	for _, e := range errors {
		typ := reflect.TypeOf(e).Elem()
		if sh, ok := w.model.Shapes[typ.Name()]; ok && sh.Exception {
			found[typ.Name()] = true
			w.compare("errors", typ.Name(), w.shapes.Of(typ), false)
		}
	}
	for name, sh := range w.model.Shapes {
		if sh.Exception && !found[name] {
			w.t.Errorf("the SDK has no error %s", name)
		}
	}
}

// compare compares a shape of the model with the shape of a struct, with all their members.
func (w *walk) compare(path, name string, sh *codec.Shape, request bool) {
	for sh.Kind == codec.KindPointer {
		sh = sh.Elem
	}
	v := visit{name, sh, request}
	s := w.model.Shapes[name]
	isUnread := sh.Type.Kind() == reflect.Interface && len(sh.Members) == 0 // a union of operations that aren't there
	if w.seen[v] || s.Document || s.EventStream || isUnread {
		return
	}
	w.seen[v] = true
	switch s.Type {
	case "list":
		w.compare(path+"[]", s.Member.Shape, sh.Elem, request)
	case "map":
		w.compare(path+"{}", s.Value.Shape, sh.Elem, request)
	case "structure":
		for member, ref := range s.Members {
			w.member(path+"."+member, s, member, ref, sh, request)
		}
	}
}

// unread are members that no operation which is there has: CopySnapshot's is filled in by the SDK's client itself.
var unread = []string{"CopySnapshot.DestinationRegion", "InvokeAsync.Status", "InvokeWithResponseStream.StatusCode"}

// member compares one member of a structure.
func (w *walk) member(path string, s modelShape, member string, ref modelRef, sh *codec.Shape, request bool) {
	if w.model.Shapes[ref.Shape].EventStream || slices.Contains(unread, path) {
		return
	}
	name := w.nameOf(member, ref, request)
	i := slices.IndexFunc(sh.Members, func(m codec.Member) bool {
		answer, asked := m.Names()
		switch {
		case s.Payload == member:
			return m.Place.In == model.InPayload
		case ref.XMLAttribute:
			return m.Place.In == model.InAttribute && m.Place.Name == name
		case ref.Location != "":
			return places[m.Place.In] == ref.Location && strings.EqualFold(m.Place.Name, name)
		case request:
			return asked == name
		}
		return answer == name
	})
	if i < 0 {
		w.t.Errorf("%s is called %q, which no member of %s is", path, name, sh.Type)
		return
	}
	w.compared++
	w.compare(path, ref.Shape, sh.Members[i].Shape, request)
}

// places has botocore's names for the parts of a request.
var places = map[any]string{
	model.InPath:    "uri",
	model.InQuery:   "querystring",
	model.InHeader:  "header",
	model.InHeaders: "headers",
	model.InStatus:  "statusCode",
}

// nameOf returns a member's name on the wire according to the model.
func (w *walk) nameOf(member string, ref modelRef, request bool) string {
	if request && slices.Contains(w.api.Protocols, model.EC2Query) {
		if ref.LocationName != "" {
			ref.LocationName = strings.ToUpper(ref.LocationName[:1]) + ref.LocationName[1:]
		}
		return cmp.Or(ref.QueryName, ref.LocationName, member)
	}
	return cmp.Or(ref.LocationName, member)
}

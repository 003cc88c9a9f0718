package internal_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/appautoscaling"
	"github.com/pintle/pintle/internal/autoscaling"
	"github.com/pintle/pintle/internal/cloudwatch"
	"github.com/pintle/pintle/internal/ec2"
	"github.com/pintle/pintle/internal/ecs"
	"github.com/pintle/pintle/internal/iam/sts"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/wire"
)

// services are all that answer operations; their methods are not called.
var services = []wire.Service{
	&appautoscaling.Service{},
	&autoscaling.Service{},
	&cloudwatch.Service{},
	&ec2.Service{},
	&ecs.Service{},
	&logs.Service{},
	&s3.Service{},
	&sqs.Service{},
	&sts.Service{},
}

// TestEveryMethodIsInItsTable fails where an operation was added or removed without go generate.
func TestEveryMethodIsInItsTable(t *testing.T) {
	for _, service := range services {
		typ := reflect.TypeOf(service)
		var methods []string
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			if m.Type.NumIn() == 3 && strings.HasSuffix(m.Type.In(2).String(), "."+m.Name+"Input") {
				methods = append(methods, m.Name)
			}
		}
		var table []string
		for _, o := range service.Operations() {
			table = append(table, o.Name)
		}
		if len(methods) == 0 || !slices.Equal(methods, table) {
			t.Errorf("%s has the operations %v, in its table are %v: run go generate ./internal/wire", typ, methods, table)
		}
	}
}

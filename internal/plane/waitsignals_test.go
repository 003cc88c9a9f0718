package plane

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/stacks"
)

// openSigned opens a control plane that checks signatures.
func openSigned(t *testing.T) *Plane {
	t.Helper()
	p, err := Open(t.Context(), Options{
		Listen:          "127.0.0.1:0",
		Data:            t.TempDir(),
		Region:          "us-east-1",
		Account:         "000000000000",
		AccessKeyID:     "AKID",
		SecretAccessKey: "secret",
		Lost:            time.Minute,
		Settle:          time.Minute,
		Log:             slog.Default(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() }) //nolint:errcheck // a test
	return p
}

// TestSignalHandle: whoever has a handle's URL may put signals there, also where everything else must be signed.
func TestSignalHandle(t *testing.T) {
	p := openSigned(t)
	in := &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(`
Resources:
  H: {Type: 'AWS::CloudFormation::WaitConditionHandle'}
  W: {Type: 'AWS::CloudFormation::WaitCondition', Properties: {Handle: !Ref H, Timeout: 60}}
Outputs: {D: {Value: !GetAtt W.Data}}`)}
	made, err := p.CloudFormation.CreateStack(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		for {
			if moved, err := p.stacks.Step(t.Context(), *made.StackId); err != nil {
				t.Fatal(err)
			} else if !moved {
				return
			}
		}
	}
	step()
	handle := ""
	for r := range p.State.View().ResourcesOf(*made.StackId) {
		if r.Name == "H" {
			handle = r.PhysicalID
		}
	}
	signal := `{"Status":"SUCCESS","Reason":"r","UniqueId":"a","Data":"x"}`
	for _, c := range []struct {
		method, url, body string
		want              int
	}{
		{http.MethodGet, handle, "", http.StatusMethodNotAllowed},
		{http.MethodPut, handle, strings.Repeat(" ", stacks.MaxSignal+1), http.StatusRequestEntityTooLarge},
		{http.MethodPut, handle, "x", http.StatusBadRequest},
		{http.MethodPut, strings.Replace(handle, "Signature=", "Signature=A", 1), signal, http.StatusForbidden},
		{http.MethodPut, handle, signal, http.StatusOK},
	} {
		w := httptest.NewRecorder()
		p.front.ServeHTTP(w, httptest.NewRequest(c.method, c.url, strings.NewReader(c.body)))
		if w.Code != c.want {
			t.Errorf("%s %.40q to %s: %d %s", c.method, c.body, c.url, w.Code, w.Body)
		}
	}
	step()
	s := p.State.View().Stacks.Get(*made.StackId)
	if s.StackStatus != types.StackStatusCreateComplete || *s.Outputs[0].OutputValue != `{"a":"x"}` {
		t.Errorf("the stack is %s: %v", s.StackStatus, s.Outputs)
	}
}

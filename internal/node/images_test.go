package node

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// tokens is an ECR that gives out a token, and notes who asked.
type tokens struct {
	token string
	err   error
	asked string // an access key
}

func (i *tokens) GetAuthorizationToken(ctx context.Context, _ *ecr.GetAuthorizationTokenInput, options ...func(*ecr.Options)) (*ecr.GetAuthorizationTokenOutput, error) {
	o := ecr.Options{Credentials: as(acs.IAMRoleCredentials{AccessKeyID: "NODE", SecretAccessKey: "SK"})}
	for _, option := range options {
		option(&o)
	}
	c, err := o.Credentials.Retrieve(ctx)
	i.asked = c.AccessKeyID
	if err != nil || i.err != nil {
		return nil, errors.Join(err, i.err)
	}
	data := types.AuthorizationData{AuthorizationToken: aws.String(base64.StdEncoding.EncodeToString([]byte(i.token)))}
	return &ecr.GetAuthorizationTokenOutput{AuthorizationData: []types.AuthorizationData{data}}, nil
}

// TestRegistry: a token is asked for as the role or as the node, and the registry is the control plane, unless that is AWS.
func TestRegistry(t *testing.T) {
	trusted := &tls.Config{MinVersion: tls.VersionTLS13}
	role := &acs.IAMRoleCredentials{AccessKeyID: "ROLE", SecretAccessKey: "SK", SessionToken: "ST"}
	for _, c := range []struct {
		name  string
		from  Config
		role  *acs.IAMRoleCredentials
		asked string
		via   *runtime.Via
	}{
		{"on loopback", Config{Endpoint: "http://127.0.0.1:4566"}, nil, "NODE", &runtime.Via{Host: "127.0.0.1:4566", Plain: true}},
		{"by TLS", Config{Endpoint: "https://plane:4566", Authority: Authority{TLS: trusted}}, role, "ROLE", &runtime.Via{Host: "plane:4566", TLS: trusted}},
		{"AWS itself", Config{}, role, "ROLE", nil},
		{"AWS by name", Config{Endpoint: "https://ecs.us-east-1.amazonaws.com"}, role, "ROLE", nil},
	} {
		i := &tokens{token: "AWS:pass:word"}
		c.from.Images = i
		got, err := New(c.from).registry(t.Context(), c.role, acs.ECRAuthData{Region: "us-east-1"})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		same := (got.Via == nil) == (c.via == nil) && (got.Via == nil || reflect.DeepEqual(got.Via, c.via))
		if got.Username != "AWS" || got.Password != "pass:word" || i.asked != c.asked || !same {
			t.Errorf("%s: %s asked and got %+v via %+v", c.name, i.asked, got, got.Via)
		}
	}
	denied := &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
	for _, i := range []*tokens{{err: denied}, {token: "hunter2"}} {
		_, err := New(Config{Images: i}).registry(t.Context(), nil, acs.ECRAuthData{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
}

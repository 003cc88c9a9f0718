package node

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Images gives out the tokens with which images are pulled. It's ECR.
type Images interface {
	GetAuthorizationToken(
		context.Context, *ecr.GetAuthorizationTokenInput, ...func(*ecr.Options),
	) (*ecr.GetAuthorizationTokenOutput, error)
}

// registry gets a token of a registry, as a role or as the node. Unless the control plane is AWS's, it's the registry, whatever the image's name
// says.
func (a *Agent) registry(ctx context.Context, role *acs.IAMRoleCredentials, from acs.ECRAuthData) (*runtime.RegistryAuth, error) {
	out, err := a.config.Images.GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{}, func(o *ecr.Options) {
		if role != nil {
			o.Credentials = as(*role)
		}
		o.RetryMaxAttempts = maxTries
		o.Region = cmp.Or(from.Region, o.Region)
	})
	if err != nil {
		return nil, notRetrieved("a token of ECR", short(err))
	}
	if len(out.AuthorizationData) == 0 {
		return nil, errors.New("ECR gave no token")
	}
	text, err := base64.StdEncoding.DecodeString(aws.ToString(out.AuthorizationData[0].AuthorizationToken))
	user, password, found := strings.Cut(string(text), ":")
	if err != nil || !found {
		return nil, errors.New("the token of ECR isn't a user name and a password") // the error would tell of it
	}
	auth := &runtime.RegistryAuth{Username: user, Password: password}
	auth.Via, err = a.viaControlPlane()
	return auth, err
}

// viaControlPlane returns where the control plane's registry is, or nil if that is AWS.
func (a *Agent) viaControlPlane() (*runtime.Via, error) {
	if a.config.Endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(a.config.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("the control plane's URL: %w", err)
	}
	if strings.HasSuffix(u.Hostname(), ".amazonaws.com") && a.config.Authority.TLS == nil {
		return nil, nil
	}
	return &runtime.Via{Host: u.Host, Plain: u.Scheme == "http", TLS: a.config.Authority.TLS}, nil
}

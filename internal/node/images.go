package node

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/peers"
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

// PeerPulls has nodes fetch layers of images from each other.
type PeerPulls struct {
	Address string // where others reach this node; "" is a free port of the machine's address towards the control plane
	// Announce tells the control plane from where this node's layers can be fetched.
	Announce func(context.Context, acs.PeerAnnouncement) (acs.PeerWelcome, error)
}

// openPeers makes the node one from which others can fetch layers, if it's to be one.
func (a *Agent) openPeers() (err error) {
	if a.config.PeerPulls == nil {
		return nil
	}
	a.peers, err = peers.Open(peers.Options{
		Dir:      filepath.Join(a.config.DataDir, "layers"),
		Address:  cmp.Or(a.config.PeerPulls.Address, net.JoinHostPort(cmp.Or(a.address, "127.0.0.1"), "0")),
		Budget:   a.config.ImageBudget / 4,
		Announce: a.config.PeerPulls.Announce,
		Instance: a.Instance,
		Log:      a.log,
	})
	return err
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
	via := &runtime.Via{Host: u.Host, Plain: u.Scheme == "http", TLS: a.config.Authority.TLS}
	if a.peers != nil {
		via.Through = a.peers.Through
	}
	return via, nil
}

// freeBytes returns how much is free on a directory's disk.
func freeBytes(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * s.Bsize, nil
}

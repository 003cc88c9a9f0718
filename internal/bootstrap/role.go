package bootstrap

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"time"
)

// Credentials are those of the instance's role, in the form in which the SDKs read them.
type Credentials struct {
	RoleArn         string
	AccessKeyID     string `json:"AccessKeyId"`
	SecretAccessKey string
	Token           string
	Expiration      string // RFC 3339
}

// serveRole serves the credentials of the instance's role to the scripts until stop is called, and returns the variables by which the AWS CLI
// and the SDKs find them. The agent isn't an instance's metadata service to the machine, on which others may be too: so it's a port of loopback,
// and a token that the scripts alone have. An instance without a role has none of it.
func (u UserData) serveRole(ctx context.Context) (env []string, stop func(), err error) {
	nothing := func() {}
	if u.Credentials == nil {
		return nil, nothing, nil
	}
	switch first, err := u.Credentials(ctx); {
	case err != nil:
		u.Log.Warn("the user data gets no credentials of the instance's role", "error", err)
		return nil, nothing, nil
	case first == nil:
		return nil, nothing, nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	token := rand.Text()
	server := &http.Server{Handler: roleOf(token, u.Credentials), ReadTimeout: time.Minute, WriteTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		server.Serve(listener) //nolint:errcheck // it ends with Close
	}()
	env = []string{
		"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://" + listener.Addr().String() + "/credentials",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN=" + token,
	}
	return env, func() {
		server.Close() //nolint:errcheck // it's over either way
		<-done
	}, nil
}

// roleOf answers whoever has the token with credentials that are asked for anew each time: the SDKs keep them until they are about to expire.
func roleOf(token string, credentials func(context.Context) (*Credentials, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(token)) != 1 {
			http.Error(w, "the token of the user data is missing", http.StatusForbidden)
			return
		}
		switch c, err := credentials(r.Context()); {
		case err != nil:
			http.Error(w, err.Error(), http.StatusBadGateway)
		case c == nil:
			http.Error(w, "the instance has no role any more", http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(c) //nolint:errcheck // whoever asked has gone
		}
	})
}

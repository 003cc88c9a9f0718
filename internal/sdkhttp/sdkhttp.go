// Package sdkhttp sends the requests of AWS's SDK such that no answer is cut off.
//
// The SDK closes a request's body as soon as an answer begins. A control plane on the same machine can answer when it has the last byte,
// while net/http still looks whether the body ends there. The closed body fails that look; net/http takes it for a failed request and closes
// the connection, and with it goes the rest of the answer: "use of closed network connection".
package sdkhttp

import (
	"io"
	"net/http"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// Client is an HTTPClient of the SDK. The zero value has no client to send with; New does.
type Client struct{ *awshttp.BuildableClient }

// New returns a client with the SDK's own settings, changed by the options.
func New(options ...func(*http.Transport)) Client {
	return Client{awshttp.NewBuildableClient().WithTransportOptions(options...)}
}

// Do sends a request. Its errors are those of http.Client.Do.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.ContentLength <= 0 {
		return c.BuildableClient.Do(r)
	}
	measured := *r
	measured.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(r.Body, r.ContentLength), r.Body} // it ends at its length without asking the body
	return c.BuildableClient.Do(&measured)
}

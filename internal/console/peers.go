package console

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/wire/call"
)

// serveAnnouncement notes from where a node serves layers of images. A node speaks for itself alone; the account's owner, whose key agents may
// have too, for any; and nobody else for one.
func (c *Console) serveAnnouncement(ctx context.Context, w http.ResponseWriter, body []byte) {
	var a acs.PeerAnnouncement
	if err := json.Unmarshal(body, &a); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	by := call.From(ctx)
	if !by.IsOwner() && (!by.Node || by.Instance != a.ContainerInstance) {
		http.Error(w, account.NotAuthorized(by.Principal, "pintle:"+by.Operation, a.ContainerInstance, ""), http.StatusForbidden)
		return
	}
	instance := c.store.View().ContainerInstances.Get(a.ContainerInstance)
	if instance == nil || aws.ToString(instance.Status) == "INACTIVE" {
		http.Error(w, "there is no container instance "+a.ContainerInstance, http.StatusBadRequest)
		return
	}
	if a.Address == "" || len(a.Key) < 16 || len(a.Certificate) != 64 || len(a.Layers) > acs.MaxPeerLayers {
		http.Error(w, "an announcement has an address, a key of 16 bytes or more, a certificate's SHA-256, and 40 layers at most", http.StatusBadRequest)
		return
	}
	writeJSON(w, c.opts.Announce(instance.ClusterArn, a))
}

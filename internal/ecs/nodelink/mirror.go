package nodelink

import (
	"path"
	"strings"

	"github.com/pintle/pintle/internal/acs"
)

// mirror returns the name by which nodes pull an image, and as whom: where the account's own registry stands in for the image's (Options.Mirrors),
// from there and as themselves, whatever the task's execution role may do, since elsewhere nobody had to ask for such images. With credentials of its
// own an image is somebody's, and comes from where it says. So does one whose name climbs out of the mirror (../): it would lead to any repository.
func (o *Options) mirror(image string, as *acs.RegistryAuthentication) (string, *acs.RegistryAuthentication) {
	host, name := registryOf(image)
	prefix := o.Mirrors[host]
	mirrored := prefix + "/" + name
	if prefix == "" || as != nil || path.Clean(mirrored) != mirrored {
		return image, as
	}
	return o.Account.Registry() + "/" + mirrored, ownRegistry(o.Account, false)
}

// registryOf returns the host of an image's registry, and what follows it. A name that begins with no host is Docker Hub's, whose official images
// are in library/, whether or not their names say so. Images in nodes' files have no registry.
func registryOf(image string) (host, name string) {
	host, name, found := strings.Cut(image, "/")
	switch {
	case strings.HasPrefix(image, "rootfs:") || strings.HasPrefix(image, "oci-layout:"):
		return "", image
	case !found || host != "localhost" && !strings.ContainsAny(host, ".:"):
		host, name = dockerHub, image
	case host == "index.docker.io": // what it was called once
		host = dockerHub
	}
	if host == dockerHub && !strings.Contains(name, "/") {
		name = "library/" + name
	}
	return host, name
}

// dockerHub is the host of Docker Hub in images' names.
const dockerHub = "docker.io"

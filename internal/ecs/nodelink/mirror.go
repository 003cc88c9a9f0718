package nodelink

import (
	"strings"

	"github.com/pintle/pintle/internal/acs"
)

// mirror has nodes take an image from the account's own registry where that stands in for the image's (Options.Mirrors). They do so as themselves,
// whatever the task's execution role may do: elsewhere nobody had to ask for such images. With credentials of its own an image is somebody's, and
// comes from where it says.
func (o *Options) mirror(image *string, as **acs.RegistryAuthentication) {
	host, path := registryOf(*image)
	prefix := o.Mirrors[host]
	if prefix == "" || *as != nil {
		return
	}
	*image = o.Account.ID + ".dkr.ecr." + o.Account.Region + ".amazonaws.com/" + prefix + "/" + path
	*as = &acs.RegistryAuthentication{Type: "ecr", ECRAuthData: &acs.ECRAuthData{Region: o.Account.Region, RegistryID: o.Account.ID}}
}

// registryOf returns the host of an image's registry, and what follows it. A name that begins with no host is Docker Hub's, whose official images
// are in library/.
func registryOf(image string) (host, path string) {
	host, path, found := strings.Cut(image, "/")
	switch {
	case !found:
		return dockerHub, "library/" + image
	case host != "localhost" && !strings.ContainsAny(host, ".:"):
		return dockerHub, image
	}
	return host, path
}

// dockerHub is the host of Docker Hub in images' names.
const dockerHub = "docker.io"

package nodelink

import (
	"testing"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
)

// TestMirror: images of registries that this one stands in for come from its repositories, and are pulled by the node as itself.
func TestMirror(t *testing.T) {
	const here = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/"
	o := Options{
		Account: account.Account{ID: "123456789012", Region: "eu-west-1"},
		Mirrors: map[string]string{"public.ecr.aws": "public", "docker.io": "mirrors/hub", "localhost:5000": "dev"},
	}
	for image, want := range map[string]string{
		"public.ecr.aws/nginx/nginx:1.27":        here + "public/nginx/nginx:1.27",
		"public.ecr.aws/nginx/nginx@sha256:0123": here + "public/nginx/nginx@sha256:0123",
		"busybox":                                here + "mirrors/hub/library/busybox",
		"busybox:1.36":                           here + "mirrors/hub/library/busybox:1.36",
		"nvidia/cuda:12":                         here + "mirrors/hub/nvidia/cuda:12",
		"docker.io/nvidia/cuda":                  here + "mirrors/hub/nvidia/cuda",
		"docker.io/busybox:1.36":                 here + "mirrors/hub/library/busybox:1.36",
		"index.docker.io/busybox":                here + "mirrors/hub/library/busybox",
		"rootfs:app.tar":                         "rootfs:app.tar",
		"localhost:5000/app":                     here + "dev/app",
		"quay.io/app":                            "quay.io/app",
		"localhost/app":                          "localhost/app",
		here + "app":                             here + "app",
		"rootfs:/srv/app":                        "rootfs:/srv/app",
		"public.ecr.aws/../private:1":            "public.ecr.aws/../private:1",
		"docker.io/a/../../../private@sha256:01": "docker.io/a/../../../private@sha256:01",
		"public.ecr.aws//private":                "public.ecr.aws//private",
		"../private":                             "../private",
	} {
		got, as := o.mirror(image, nil)
		if got != want {
			t.Errorf("%s comes from %s, not %s", image, got, want)
		}
		if mirrored := got != image; mirrored != (as != nil) || mirrored && (as.Type != "ecr" || as.ECRAuthData.UseExecutionRole) {
			t.Errorf("%s is pulled with %+v", image, as)
		}
	}
	if private, as := o.mirror("public.ecr.aws/mine", &acs.RegistryAuthentication{Type: "asm"}); private != "public.ecr.aws/mine" || as.Type != "asm" {
		t.Errorf("an image with credentials of its own comes from %s, with %+v", private, as)
	}
}

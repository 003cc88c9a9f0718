package environments

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// TestImages: AWS's base image of a runtime, or the operator's; and of a function that is an image, the one that was resolved.
func TestImages(t *testing.T) {
	m := &Manager{opts: Options{Images: map[string]string{"python3.12": "mine/python:1"}}}
	for runtime, want := range map[types.Runtime]string{
		"python3.12":      "mine/python:1",
		"python3.13":      "public.ecr.aws/lambda/python:3.13",
		"nodejs22.x":      "public.ecr.aws/lambda/nodejs:22",
		"provided.al2":    "public.ecr.aws/lambda/provided:al2",
		"provided.al2023": "public.ecr.aws/lambda/provided:al2023",
	} {
		if got := m.imageOf(&state.FunctionVersion{FunctionConfiguration: types.FunctionConfiguration{Runtime: runtime}}); got != want {
			t.Errorf("%s runs in %s, want %s", runtime, got, want)
		}
	}
	image := &state.FunctionVersion{
		FunctionConfiguration: types.FunctionConfiguration{PackageType: types.PackageTypeImage}, Code: state.FunctionCode{Image: "a:1", Resolved: "a@sha256:2"},
	}
	if got := m.imageOf(image); got != "a@sha256:2" {
		t.Errorf("an image runs as %s", got)
	}
}

// TestTaskDefinitions: what an environment's container shows, and what it runs.
func TestTaskDefinitions(t *testing.T) {
	m := &Manager{}
	version := types.FunctionConfiguration{
		FunctionName: aws.String("f"), Version: aws.String(state.Latest), MemorySize: aws.Int32(128), Handler: aws.String("i.h"),
		LoggingConfig: &types.LoggingConfig{LogGroup: aws.String("/aws/lambda/f")}, EphemeralStorage: &types.EphemeralStorage{Size: aws.Int32(1024)},
	}
	zip := &state.FunctionVersion{FunctionConfiguration: version, Code: state.FunctionCode{SHA256: "aa", Layers: []string{"bb", "cc"}}}
	zip.Runtime = "nodejs22.x"
	image := &state.FunctionVersion{FunctionConfiguration: version, Code: state.FunctionCode{Image: "i"}}
	image.PackageType, image.Handler = types.PackageTypeImage, nil
	image.ImageConfigResponse = &types.ImageConfigResponse{ImageConfig: &types.ImageConfig{
		EntryPoint: []string{"/e"}, Command: []string{"c"}, WorkingDirectory: aws.String("/w"),
	}}
	for name, c := range map[string]struct {
		version             *state.FunctionVersion
		entry, command      []string
		directory, runtime  string
		volumes, containing []string
	}{
		"zip":   {zip, nil, []string{"i.h"}, "", "nodejs22.x", []string{"code", "layers", "tmp"}, []string{"/var/task", "/opt", "/tmp"}},
		"image": {image, []string{"/e"}, []string{"c"}, "/w", acs.FunctionImage, []string{"code", "tmp"}, []string{"/tmp"}},
	} {
		in := m.taskDefinition(c.version, map[string]string{TagGPU: "2"})
		got := in.ContainerDefinitions[0]
		if !slices.Equal(got.EntryPoint, c.entry) || !slices.Equal(got.Command, c.command) || aws.ToString(got.WorkingDirectory) != c.directory {
			t.Errorf("%s runs %q %q in %q", name, got.EntryPoint, got.Command, aws.ToString(got.WorkingDirectory))
		}
		if r := got.ResourceRequirements; len(r) != 1 || *r[0].Value != "2" {
			t.Errorf("%s requires %v", name, r)
		}
		var volumes, places []string
		for _, v := range in.Volumes {
			volumes = append(volumes, *v.Name)
		}
		for _, p := range got.MountPoints {
			places = append(places, *p.ContainerPath)
			if *p.ReadOnly == (*p.ContainerPath == "/tmp") {
				t.Errorf("%s: whether %s is read-only: %t", name, *p.ContainerPath, *p.ReadOnly)
			}
		}
		if !slices.Equal(volumes, c.volumes) || !slices.Equal(places, c.containing) {
			t.Errorf("%s has %q at %q", name, volumes, places)
		}
		options := in.Volumes[len(in.Volumes)-1].DockerVolumeConfiguration.DriverOpts
		if options[acs.FunctionStorage] != "1024" || in.Volumes[0].DockerVolumeConfiguration.DriverOpts[acs.FunctionRuntime] != c.runtime {
			t.Errorf("%s has the volumes %v", name, in.Volumes)
		}
	}
}

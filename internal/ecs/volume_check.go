package ecs

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/wire/call"
)

var (
	volumeRE      = pattern.New(`^[a-zA-Z0-9][a-zA-Z0-9_-]*$`, 255)
	fileSystemRE  = pattern.New(`^fs-[0-9a-f]{8,40}$`, 43)
	accessPointRE = pattern.New(`^fsap-[0-9a-f]{8,40}$`, 45)
)

func checkVolumes(volumes []types.Volume) error {
	seen := map[string]bool{}
	atLaunch := ""
	for _, v := range volumes {
		name := aws.ToString(v.Name)
		if !volumeRE.MatchString(name) {
			return clientError("Volume name %q must begin with a letter or number, and have up to 255 letters, numbers, hyphens and "+
				"underscores.", name)
		}
		if seen[name] {
			return clientError("Volume %q is defined twice.", name)
		}
		seen[name] = true
		if v.Host != nil && v.DockerVolumeConfiguration != nil {
			return clientError("Volume %q has both host and dockerVolumeConfiguration.", name)
		}
		if v.S3filesVolumeConfiguration != nil {
			return clientError("Volume %q is of Amazon S3 Files, which Pintle does not have.", name)
		}
		if err := checkAtLaunch(v, &atLaunch); err != nil {
			return err
		}
		if err := checkFileSystem(name, v.EfsVolumeConfiguration); err != nil {
			return err
		}
		if d := v.DockerVolumeConfiguration; d != nil {
			if d.Scope != "" && !slices.Contains(d.Scope.Values(), d.Scope) {
				return clientError("Volume %q: scope must be task or shared, not %q.", name, d.Scope)
			}
			if d.Scope != types.ScopeShared && d.Autoprovision != nil {
				return clientError("Volume %q: autoprovision is for volumes of scope shared.", name)
			}
			if err := checkDataSet(name, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAtLaunch checks a volume that may be configured at launch. other is the name of another one, or "".
func checkAtLaunch(v types.Volume, other *string) error {
	if !aws.ToBool(v.ConfiguredAtLaunch) {
		return nil
	}
	host := v.Host != nil && aws.ToString(v.Host.SourcePath) != ""
	if host || v.DockerVolumeConfiguration != nil || v.EfsVolumeConfiguration != nil || v.FsxWindowsFileServerVolumeConfiguration != nil {
		return clientError("Volume %q is configured at launch, so it can't have a configuration in the task definition.", *v.Name)
	}
	if *other != "" {
		return clientError("At most one volume can be configured at launch, not both %q and %q.", *other, *v.Name)
	}
	*other = *v.Name
	return nil
}

// checkFileSystem checks a volume of EFS: API_EFSVolumeConfiguration, API_EFSAuthorizationConfig.
func checkFileSystem(name string, e *types.EFSVolumeConfiguration) error {
	if e == nil {
		return nil
	}
	if id := aws.ToString(e.FileSystemId); !fileSystemRE.MatchString(id) {
		return clientError("Volume %q: fileSystemId %q is not of the form fs-0123abcd.", name, id)
	}
	encrypted := e.TransitEncryption == types.EFSTransitEncryptionEnabled
	if t := e.TransitEncryption; t != "" && !slices.Contains(t.Values(), t) {
		return clientError("Volume %q: transitEncryption must be one of %v, not %q.", name, t.Values(), t)
	}
	if port := aws.ToInt32(e.TransitEncryptionPort); port != 0 && !encrypted || port < 0 || port > math.MaxUint16 {
		return clientError("Volume %q: transitEncryptionPort must be a port, and needs transitEncryption.", name)
	}
	a := e.AuthorizationConfig
	if a == nil {
		return nil
	}
	point := aws.ToString(a.AccessPointId)
	switch {
	case a.Iam != "" && !slices.Contains(a.Iam.Values(), a.Iam):
		return clientError("Volume %q: iam must be one of %v, not %q.", name, a.Iam.Values(), a.Iam)
	case point != "" && !accessPointRE.MatchString(point):
		return clientError("Volume %q: accessPointId %q is not of the form fsap-0123abcd.", name, point)
	case (point != "" || a.Iam == types.EFSAuthorizationConfigIAMEnabled) && !encrypted:
		return clientError("Volume %q: transitEncryption must be ENABLED for an access point or IAM.", name)
	case point != "" && strings.Trim(aws.ToString(e.RootDirectory), "/") != "":
		return clientError("Volume %q: rootDirectory must be omitted or / with an access point, which has its own.", name)
	}
	return nil
}

// isDataSet reports whether a volume shows what lies in S3.
func isDataSet(d *types.DockerVolumeConfiguration) bool {
	return d != nil && aws.ToString(d.Driver) == acs.S3Driver
}

// checkFunctions refuses volumes of Lambda's driver to everybody but Lambda: whoever names another function's code would have it.
func checkFunctions(ctx context.Context, volumes []types.Volume) error {
	if call.From(ctx).Via == "lambda" {
		return nil
	}
	for _, v := range volumes {
		if d := v.DockerVolumeConfiguration; d != nil && aws.ToString(d.Driver) == acs.FunctionDriver {
			return clientError("Volume %q: the driver %s is for AWS Lambda's own task definitions.", aws.ToString(v.Name), acs.FunctionDriver)
		}
	}
	return nil
}

// checkDataSet refuses what a volume that shows a prefix of S3 can't have.
func checkDataSet(name string, d *types.DockerVolumeConfiguration) error {
	if !isDataSet(d) {
		return nil
	}
	source := d.DriverOpts[acs.S3Source]
	bucket, _, _ := strings.Cut(strings.TrimPrefix(source, "s3://"), "/")
	switch {
	case !strings.HasPrefix(source, "s3://") || bucket == "":
		return clientError("Volume %q: the driver %s needs driverOpts with %s, of the form s3://bucket/prefix, not %q.",
			name, acs.S3Driver, acs.S3Source, source)
	case len(d.DriverOpts) > 1:
		return clientError("Volume %q: the driver %s has no driverOpts but %s.", name, acs.S3Driver, acs.S3Source)
	case d.Scope == types.ScopeShared:
		return clientError("Volume %q: volumes of the driver %s have the scope task; all tasks of a node share what was fetched.",
			name, acs.S3Driver)
	case len(d.Labels) > 0:
		return clientError("Volume %q: volumes of the driver %s have no labels.", name, acs.S3Driver)
	}
	return nil
}

package ecs

import (
	"cmp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/state"
)

// latestPlatform is how services name the newest version of Fargate's platform, which is what they get if they name none.
const latestPlatform = "LATEST"

// checkPlatformVersion checks the version of Fargate's platform that a call asks for.
func checkPlatformVersion(version *string, fargate bool) error {
	v := aws.ToString(version)
	switch {
	case v == "" || fargate && (v == latestPlatform || v == capacity.PlatformVersion):
		return nil
	case !fargate:
		return invalidParameter("The platform version must be null when specifying an EC2 launch type.")
	}
	return &types.PlatformUnknownException{Message: account.Message("The specified platform version does not exist: platformVersion "+
		"must be %s or %s, not %q.", latestPlatform, capacity.PlatformVersion, v)}
}

// setPlatform sets the platform of a service as the call gives it. Only Fargate's services have one.
func setPlatform(row *state.Service, given *string) {
	_, row.PlatformFamily = capacity.Platform(row.LaunchType, row.CapacityProviderStrategy)
	if row.PlatformFamily == nil {
		row.PlatformVersion = nil
		return
	}
	if aws.ToString(given) == "" {
		given = cmp.Or(row.PlatformVersion, aws.String(latestPlatform))
	}
	row.PlatformVersion = given
}

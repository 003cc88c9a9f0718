package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/pintle/pintle/internal/acs"
)

// Parameters reads the parameters that containers have as secrets. It's Parameter Store.
type Parameters interface {
	GetParameters(context.Context, *ssm.GetParametersInput, ...func(*ssm.Options)) (*ssm.GetParametersOutput, error)
}

// maxNames is how many parameters one call of GetParameters may name.
const maxNames = 10

// secrets fetches secrets as their task's execution role, and returns their values by where they come from. Its errors tell no value.
func (a *Agent) secrets(ctx context.Context, role acs.IAMRoleCredentials, wanted []acs.Secret) (map[string]string, error) {
	byRegion := map[string][]string{}
	for _, s := range wanted {
		if s.Provider != "ssm" {
			return nil, fmt.Errorf("this node can't fetch secrets of the provider %s", s.Provider)
		}
		if !slices.Contains(byRegion[s.Region], s.ValueFrom) {
			byRegion[s.Region] = append(byRegion[s.Region], s.ValueFrom)
		}
	}
	values := map[string]string{}
	for _, region := range slices.Sorted(maps.Keys(byRegion)) {
		for names := range slices.Chunk(byRegion[region], maxNames) {
			if err := a.addParameters(ctx, role, region, names, values); err != nil {
				return nil, fmt.Errorf("unable to retrieve secrets from ssm: %w", err)
			}
		}
	}
	return values, nil
}

// addParameters adds the values of up to maxNames parameters by the names that they were asked for under.
func (a *Agent) addParameters(ctx context.Context, role acs.IAMRoleCredentials, region string, names []string, values map[string]string) error {
	in := &ssm.GetParametersInput{Names: names, WithDecryption: aws.Bool(true)}
	out, err := a.config.Parameters.GetParameters(ctx, in, func(o *ssm.Options) {
		o.Credentials = credentials.NewStaticCredentialsProvider(role.AccessKeyID, role.SecretAccessKey, role.SessionToken)
		o.RetryMaxAttempts = 5
		if region != "" {
			o.Region = region
		}
	})
	if err != nil {
		return err
	}
	for _, p := range out.Parameters {
		selector := aws.ToString(p.Selector)
		values[aws.ToString(p.Name)+selector] = aws.ToString(p.Value)
		values[aws.ToString(p.ARN)+selector] = aws.ToString(p.Value)
	}
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { _, ok := values[name]; return ok })
	if len(missing) > 0 {
		return fmt.Errorf("invalid parameters: %s", strings.Join(missing, ", "))
	}
	return nil
}

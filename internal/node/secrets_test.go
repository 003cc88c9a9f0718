package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/acs"
)

// parameters answers with the values of all names but those with "none" in them.
type parameters struct {
	calls []string // region, key and number of names of each
	fail  error
}

func (p *parameters) GetParameters(
	ctx context.Context, in *ssm.GetParametersInput, options ...func(*ssm.Options),
) (*ssm.GetParametersOutput, error) {
	var o ssm.Options
	for _, set := range options {
		set(&o)
	}
	key, err := o.Credentials.Retrieve(ctx)
	p.calls = append(p.calls, fmt.Sprintf("%s %s %s %d %v", o.Region, key.AccessKeyID, key.SessionToken, len(in.Names), *in.WithDecryption))
	out := &ssm.GetParametersOutput{}
	for _, text := range in.Names {
		if strings.Contains(text, "none") {
			out.InvalidParameters = append(out.InvalidParameters, text)
			continue
		}
		arn := strings.HasPrefix(text, "arn:")
		name, selector := text, (*string)(nil)
		if i := strings.LastIndex(text, ":"); i > 0 && (!arn || strings.Count(text, ":") > 5) {
			name, selector = text[:i], aws.String(text[i:])
		}
		row := types.Parameter{Name: &name, ARN: aws.String("arn:aws:ssm:r:1:parameter" + name), Selector: selector, Value: aws.String(valueOf(text))}
		if arn {
			row.Name, row.ARN = aws.String(strings.TrimPrefix(name, "arn:aws:ssm:r:1:parameter")), &name
		}
		out.Parameters = append(out.Parameters, row)
	}
	return out, errors.Join(err, p.fail)
}

func valueOf(text string) string {
	return "value of " + strings.TrimPrefix(text, "arn:aws:ssm:r:1:parameter")
}

func TestFetchingSecrets(t *testing.T) {
	role := acs.IAMRoleCredentials{AccessKeyID: "AK", SecretAccessKey: "SK", SessionToken: "ST"}
	from := func(region string, names ...string) (all []acs.Secret) {
		for _, n := range names {
			all = append(all, acs.Secret{Name: "N", ValueFrom: n, Provider: "ssm", Region: region})
		}
		return all
	}
	many := make([]string, 12)
	for i := range many {
		many[i] = fmt.Sprint("/p", i)
	}
	for _, c := range []struct {
		name   string
		wanted []acs.Secret
		fail   error
		calls  []string
		err    string
	}{
		{"names, versions, ARNs", from("r", "/a", "b", "/a:1", "arn:aws:ssm:r:1:parameter/a", "arn:aws:ssm:r:1:parameter/a:label"), nil, []string{"r AK ST 5 true"}, ""},
		{"each once", from("r", "/a", "/a"), nil, []string{"r AK ST 1 true"}, ""},
		{"ten a call", from("r", many...), nil, []string{"r AK ST 10 true", "r AK ST 2 true"}, ""},
		{"a region each", slices.Concat(from("b", "/a"), from("a", "/a")), nil, []string{"a AK ST 1 true", "b AK ST 1 true"}, ""},
		{"missing", from("r", "/a", "/none", "none2"), nil, []string{"r AK ST 3 true"}, "unable to retrieve secrets from ssm: invalid parameters: /none, none2"},
		{"refused", from("r", "/a"), errors.New("AccessDeniedException"), []string{"r AK ST 1 true"}, "unable to retrieve secrets from ssm: AccessDeniedException"},
		{"another provider", []acs.Secret{{Name: "N", ValueFrom: "s", Provider: "asm"}}, nil, nil, "this node can't fetch secrets of the provider asm"},
	} {
		p := &parameters{fail: c.fail}
		a := New(Config{Parameters: p})
		values, err := a.secrets(t.Context(), role, c.wanted)
		if !slices.Equal(p.calls, c.calls) {
			t.Errorf("%s: calls %q", c.name, p.calls)
		}
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: got %v", c.name, err)
			}
			continue
		}
		for _, s := range c.wanted {
			if err != nil || values[s.ValueFrom] != valueOf(s.ValueFrom) {
				t.Errorf("%s: %s is %q, %v", c.name, s.ValueFrom, values[s.ValueFrom], err)
			}
		}
	}
}

// TestSecretsNeedACapability: a node says whether tasks with parameters as secrets can be placed on it.
func TestSecretsNeedACapability(t *testing.T) {
	const capability = "ecs.capability.secrets.ssm.environment-variables"
	for _, able := range []bool{true, false} {
		c := Config{Runtime: newFakeRuntime()}
		if able {
			c.Parameters = &parameters{}
		}
		if _, registered := New(c).attributes()[capability]; registered != able {
			t.Errorf("able %v, registered %v", able, registered)
		}
	}
}

package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	smtypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/dataset"
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
		{"missing", from("r", "/a", "/none", "none2"), nil, []string{"r AK ST 3 true"}, "execution resource retrieval failed: unable to retrieve secrets from ssm: service call has been retried 1 time(s): invalid parameters: /none, none2"},
		{"refused", from("r", "/a"), errors.New("AccessDeniedException"), []string{"r AK ST 1 true"}, "execution resource retrieval failed: unable to retrieve secrets from ssm: service call has been retried 1 time(s): AccessDeniedException"},
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

// values is a Secrets Manager with one secret.
type values struct {
	calls []string
	text  *string
	fail  error
}

func (v *values) GetSecretValue(
	ctx context.Context, in *secretsmanager.GetSecretValueInput, options ...func(*secretsmanager.Options),
) (*secretsmanager.GetSecretValueOutput, error) {
	var o secretsmanager.Options
	for _, set := range options {
		set(&o)
	}
	key, err := o.Credentials.Retrieve(ctx)
	v.calls = append(v.calls, fmt.Sprint(o.Region, " ", key.AccessKeyID, " ", *in.SecretId, " ", aws.ToString(in.VersionStage), " ", aws.ToString(in.VersionId)))
	return &secretsmanager.GetSecretValueOutput{SecretString: v.text}, errors.Join(err, v.fail)
}

func TestSecretsOfSecretsManager(t *testing.T) {
	const arn = "arn:aws:secretsmanager:r:1:secret:app/db-AbCdEf"
	const failed = "execution resource retrieval failed: unable to retrieve secret from asm: service call has been retried 1 time(s): "
	text := aws.String(`{"user": "me", "port": 5432, "on": true, "none": null, "list": [1, "a"], "empty": ""}`)
	for _, c := range []struct {
		from  string
		text  *string
		fail  error
		call  string // without the region and the key
		value string
		err   string
	}{
		{arn, text, nil, arn + "  ", *text, ""},
		{"name", aws.String("plain"), nil, "name  ", "plain", ""},
		{arn + ":user::", text, nil, arn + "  ", "me", ""},
		{arn + ":port::", text, nil, arn + "  ", "5432", ""},
		{arn + ":on::", text, nil, arn + "  ", "true", ""},
		{arn + ":none::", text, nil, arn + "  ", "null", ""},
		{arn + ":list::", text, nil, arn + "  ", `[1, "a"]`, ""},
		{arn + ":empty::", text, nil, arn + "  ", "", ""},
		{arn + "::AWSPREVIOUS:", text, nil, arn + " AWSPREVIOUS ", *text, ""},
		{arn + ":user:AWSPENDING:v1", text, nil, arn + " AWSPENDING v1", "me", ""},
		{arn + ":::v1", text, nil, arn + "  v1", *text, ""},
		{arn + ":other::", text, nil, arn + "  ", "", failed + "retrieved secret from Secrets Manager did not contain json key other"},
		{arn + ":user::", aws.String("hunter2"), nil, arn + "  ", "", failed + "the secret " + arn + " isn't a JSON object, so it has no key user"},
		{arn + ":user", text, nil, "", "", failed + arn + ":user is neither a secret's ARN nor one with :json-key:version-stage:version-id behind it"},
		{arn, nil, nil, arn + "  ", "", failed + "the secret " + arn + " is binary, so it can't be an environment variable"},
		{
			arn + "::AWSPENDING:", nil, &smtypes.ResourceNotFoundException{Message: aws.String("Secrets Manager can't find it.")}, arn + " AWSPENDING ", "",
			failed + "failed to fetch secret " + arn + " from secrets manager: ResourceNotFoundException: Secrets Manager can't find it.",
		},
		{
			arn, nil, &retry.MaxAttemptsError{Attempt: 5, Err: errors.New("connection refused")}, arn + "  ", "",
			strings.Replace(failed, "1", "5", 1) + "failed to fetch secret " + arn +
				" from secrets manager: exceeded maximum number of attempts, 5, connection refused",
		},
	} {
		v := &values{text: c.text, fail: c.fail}
		got, err := New(Config{SecretValues: v}).secrets(t.Context(), acs.IAMRoleCredentials{AccessKeyID: "AK", SecretAccessKey: "SK"},
			[]acs.Secret{{Name: "N", ValueFrom: c.from, Provider: "asm", Region: "r"}})
		if said := fmt.Sprint(err); c.err == "" && err != nil || c.err != "" && said != c.err || strings.Contains(said, "hunter") {
			t.Errorf("%s: got %v, want %s", c.from, err, c.err)
		}
		if call := strings.Join(v.calls, ","); got[c.from] != c.value || strings.TrimPrefix(call, "r AK ") != c.call {
			t.Errorf("%s: got %q by %q, want %q by %q", c.from, got[c.from], call, c.value, c.call)
		}
	}
}

// objects is an S3 with one object.
type objects struct {
	dataset.Client
	text string
	fail error
}

func (o *objects) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return &s3.GetObjectOutput{Body: io.NopCloser(strings.NewReader(*in.Bucket + " " + *in.Key + " " + o.text))}, o.fail
}

func TestEnvironmentFiles(t *testing.T) {
	for _, c := range []struct {
		arn  string
		s3   objects
		want string
	}{
		{"arn:aws:s3:::b/k/f.env", objects{text: "A=1"}, "b k/f.env A=1"},
		{"arn:aws:s3:::b/x:y.env", objects{}, "b x:y.env "},
		{"arn:aws:s3:::b", objects{}, "unable to parse bucket and key from s3 ARN specified in environmentFile arn:aws:s3:::b"},
		{"b/f.env", objects{}, "unable to parse bucket and key from s3 ARN specified in environmentFile b/f.env"},
		{
			"arn:aws:s3:::b/f.env", objects{fail: &s3types.NoSuchKey{Message: aws.String("The specified key does not exist.")}},
			"unable to download env file with key f.env from bucket b, error: NoSuchKey: The specified key does not exist.",
		},
		{
			"arn:aws:s3:::b/f.env", objects{text: strings.Repeat("x", maxEnvironmentFile)},
			"the env file with key f.env from bucket b has more than 1048576 bytes",
		},
	} {
		got, err := New(Config{Objects: &c.s3}).environmentFile(t.Context(), acs.IAMRoleCredentials{}, c.arn)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %.200s, want %s", c.arn, got, c.want)
		}
	}
}

// TestFetchingNeedsCapabilities: a node says which tasks can be placed on it.
func TestFetchingNeedsCapabilities(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"secrets.ssm.environment-variables":              func(c *Config) { c.Parameters = &parameters{} },
		"secrets.asm.environment-variables":              func(c *Config) { c.SecretValues = &values{} },
		"private-registry-authentication.secretsmanager": func(c *Config) { c.SecretValues = &values{} },
		"env-files.s3": func(c *Config) { c.Objects = &objects{} },
	} {
		able := Config{Runtime: newFakeRuntime()}
		change(&able)
		for _, c := range []Config{able, {Runtime: newFakeRuntime()}} {
			if _, registered := New(c).attributes()["ecs.capability."+name]; registered != (c.Parameters != nil || c.SecretValues != nil || c.Objects != nil) {
				t.Errorf("%s: %v", name, registered)
			}
		}
	}
}

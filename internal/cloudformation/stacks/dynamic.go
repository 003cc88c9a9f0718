package stacks

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// dynamic finds dynamic references: {{resolve:SERVICE:REFERENCE}}.
var dynamic = regexp.MustCompile(`\{\{resolve:(ssm-secure|ssm|secretsmanager):([^{}]+)\}\}`)

// maxReferences is how many dynamic references a resource may have. On AWS, a whole template may have as many.
const maxReferences = 60

// takesSecure is the only property of types that are here which may have a SecureString's value: "Dynamic references" in the user guide. What
// is in others is shown by their services.
const takesSecure = "AWS::IAM::User/Properties/LoginProfile/Password"

// refuseSecure refuses {{resolve:ssm-secure:…}} where a property doesn't take it.
func refuseSecure(kind string, properties map[string]any) error {
	found := secureIn(kind+"/Properties", properties)
	if found = slices.DeleteFunc(found, func(at string) bool { return at == takesSecure }); len(found) == 0 {
		return nil
	}
	slices.Sort(found)
	return template.Errorf("SSM Secure reference is not supported in: [%s]", strings.Join(slices.Compact(found), ","))
}

// secureIn lists the paths of what refers to a SecureString.
func secureIn(path string, v any) (found []string) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			found = append(found, secureIn(path+"/"+name, member)...)
		}
	case []any:
		for _, item := range v {
			found = append(found, secureIn(path, item)...)
		}
	case string:
		if strings.Contains(v, "{{resolve:ssm-secure:") {
			found = append(found, path)
		}
	}
	return found
}

// resolver replaces the dynamic references of a resource.
type resolver struct {
	*Loop
	found int
}

// resolve replaces the dynamic references in a resource's properties.
func (r *resolver) resolve(ctx context.Context, properties map[string]any) error {
	for name, v := range properties {
		got, err := r.resolved(ctx, v)
		if err != nil {
			return err
		}
		properties[name] = got
	}
	return nil
}

func (r *resolver) resolved(ctx context.Context, v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		return v, r.resolve(ctx, v)
	case []any:
		for i := range v {
			got, err := r.resolved(ctx, v[i])
			if err != nil {
				return nil, err
			}
			v[i] = got
		}
	case string:
		if strings.Contains(v, "{{resolve:") {
			return r.resolvedText(ctx, v)
		}
	}
	return v, nil
}

func (r *resolver) resolvedText(ctx context.Context, text string) (_ string, failed error) {
	out := dynamic.ReplaceAllStringFunc(text, func(found string) string {
		if r.found++; r.found > maxReferences {
			failed = template.Errorf("a resource may have at most %d dynamic references", maxReferences)
			return ""
		}
		m := dynamic.FindStringSubmatch(found)
		got, err := r.reference(ctx, m[1], m[2])
		if err != nil && failed == nil {
			failed = err
		}
		return got
	})
	return out, failed
}

// reference looks up what a dynamic reference refers to.
func (l *Loop) reference(ctx context.Context, service, reference string) (string, error) {
	if service == "secretsmanager" {
		return l.secret(ctx, reference)
	}
	in := &ssm.GetParameterInput{Name: &reference, WithDecryption: aws.Bool(service == "ssm-secure")}
	out, err := call.Do[ssm.GetParameterOutput](ctx, l.opts.Services, in)
	if err != nil {
		return "", err
	}
	if secure := out.Parameter.Type == "SecureString"; secure != (service == "ssm-secure") {
		return "", template.Errorf("Parameter %s is of type %s, which {{resolve:%s:…}} does not refer to", reference, out.Parameter.Type, service)
	}
	return *out.Parameter.Value, nil
}

// secret looks up a secret, or a value in its JSON: SECRET[:SecretString[:KEY[:STAGE[:VERSION]]]], where SECRET may be an ARN.
func (l *Loop) secret(ctx context.Context, reference string) (string, error) {
	parts := strings.Split(reference, ":")
	if parts[0] == "arn" && len(parts) >= 7 {
		parts = append([]string{strings.Join(parts[:7], ":")}, parts[7:]...)
	}
	part := func(i int) *string {
		if i < len(parts) && parts[i] != "" {
			return &parts[i]
		}
		return nil
	}
	in := &secretsmanager.GetSecretValueInput{SecretId: &parts[0], VersionStage: part(3), VersionId: part(4)}
	out, err := call.Do[secretsmanager.GetSecretValueOutput](ctx, l.opts.Services, in)
	if err != nil {
		return "", err
	}
	if key := part(2); key != nil {
		return member(aws.ToString(out.SecretString), *key)
	}
	return aws.ToString(out.SecretString), nil
}

// member returns a value in a JSON object.
func member(text, key string) (string, error) {
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return "", template.Errorf("Could not parse SecretString JSON")
	}
	value, there := object[key].(string)
	if !there {
		return "", template.Errorf("Could not find a value associated with JSONKey in SecretString")
	}
	return value, nil
}

package lambda

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/state"
)

// The defaults of functions: API_CreateFunction.
const (
	defaultMemory  = 128
	defaultTimeout = 3
	maxTimeout     = 900 // https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
	defaultStorage = 512
)

// maxEnvironment is the most bytes of a function's variables.
const maxEnvironment = 4096

// Runs reports whether functions of a runtime can run here.
func Runs(runtime string) bool { return runs.MatchString(runtime) }

// runs matches the runtimes for which there is a bootstrap.
var runs = regexp.MustCompile(`^(python3\.\d+|nodejs\d+\.x|provided\.al2|provided\.al2023)$`)

// configuration is what CreateFunction and UpdateFunctionConfiguration have in common; CreateFunction has all of it.
type configuration struct {
	lambda.UpdateFunctionConfigurationInput
}

// unsupported names what a call asks for that Pintle doesn't have, or is "".
func (c *configuration) unsupported() string {
	v := c.VpcConfig
	for _, one := range []struct {
		name  string
		asked bool
	}{
		{"CapacityProviderConfig", c.CapacityProviderConfig != nil},
		{"DurableConfig", c.DurableConfig != nil},
		{"FileSystemConfigs", len(c.FileSystemConfigs) > 0},
		{"KMSKeyArn", aws.ToString(c.KMSKeyArn) != ""},
		{"SnapStart.ApplyOn", c.SnapStart != nil && c.SnapStart.ApplyOn != "" && c.SnapStart.ApplyOn != types.SnapStartApplyOnNone},
		{"TracingConfig.Mode", c.TracingConfig != nil && c.TracingConfig.Mode == types.TracingModeActive},
		{"VpcConfig", v != nil && len(v.SubnetIds)+len(v.SecurityGroupIds) > 0 || v != nil && aws.ToBool(v.Ipv6AllowedForDualStack)},
	} {
		if one.asked {
			return one.name
		}
	}
	return ""
}

// apply changes a version as a call asks.
func (s *Service) apply(tx *state.View, c *configuration, to *state.FunctionVersion) error {
	if name := c.unsupported(); name != "" {
		return invalid("%s: Pintle doesn't support what is asked for. docs/lambda.md lists what it has.", name)
	}
	if c.Role != nil && s.opts.Trusts != nil && !s.opts.Trusts(*c.Role) {
		return invalid("The role defined for the function cannot be assumed by Lambda.")
	}
	if n := aws.ToInt32(c.Timeout); n > maxTimeout {
		return invalid("1 validation error detected: Value '%d' at 'timeout' failed to satisfy constraint: "+
			"Member must have value less than or equal to %d", n, maxTimeout)
	}
	set(&to.Description, c.Description)
	set(&to.Handler, c.Handler)
	set(&to.Role, c.Role)
	set(&to.MemorySize, c.MemorySize)
	set(&to.Timeout, c.Timeout)
	if c.Runtime != "" {
		to.Runtime = c.Runtime
	}
	if c.Environment != nil {
		if err := checkEnvironment(c.Environment.Variables); err != nil {
			return err
		}
		to.Environment = nil
		if len(c.Environment.Variables) > 0 {
			to.Environment = &types.EnvironmentResponse{Variables: c.Environment.Variables}
		}
	}
	if d := c.DeadLetterConfig; d != nil {
		if err := s.checkDestination("DeadLetterConfig.TargetArn", aws.ToString(d.TargetArn), "sqs", "sns"); err != nil {
			return err
		}
		to.DeadLetterConfig = nil
		if aws.ToString(d.TargetArn) != "" {
			to.DeadLetterConfig = d
		}
	}
	if c.EphemeralStorage != nil {
		to.EphemeralStorage = c.EphemeralStorage
	}
	if c.ImageConfig != nil {
		to.ImageConfigResponse = &types.ImageConfigResponse{ImageConfig: c.ImageConfig}
	}
	if c.LoggingConfig != nil {
		if err := setLogging(*c.LoggingConfig, to); err != nil {
			return err
		}
	}
	if c.Layers != nil {
		if err := s.useLayers(tx, c.Layers, to); err != nil {
			return err
		}
	}
	return checkVersion(to)
}

// setLogging says how a version's log is written. Levels are for logs in JSON: API_LoggingConfig.
func setLogging(in types.LoggingConfig, to *state.FunctionVersion) error {
	l := *to.LoggingConfig
	l.LogFormat = cmp.Or(in.LogFormat, l.LogFormat)
	l.ApplicationLogLevel = cmp.Or(in.ApplicationLogLevel, l.ApplicationLogLevel)
	l.SystemLogLevel = cmp.Or(in.SystemLogLevel, l.SystemLogLevel)
	if aws.ToString(in.LogGroup) != "" {
		l.LogGroup = in.LogGroup
	}
	switch {
	case l.LogFormat == types.LogFormatJson:
		l.ApplicationLogLevel = cmp.Or(l.ApplicationLogLevel, types.ApplicationLogLevelInfo)
		l.SystemLogLevel = cmp.Or(l.SystemLogLevel, types.SystemLogLevelInfo)
	case in.ApplicationLogLevel != "" || in.SystemLogLevel != "":
		return invalid("LoggingConfig.ApplicationLogLevel and SystemLogLevel are for the LogFormat JSON.")
	default:
		l.ApplicationLogLevel, l.SystemLogLevel = "", ""
	}
	to.LoggingConfig = &l
	return nil
}

func set[T any](to **T, value *T) {
	if value != nil {
		*to = value
	}
}

// checkVersion refuses a version that couldn't be run.
func checkVersion(v *state.FunctionVersion) error {
	if v.PackageType == types.PackageTypeImage {
		if v.Runtime != "" || aws.ToString(v.Handler) != "" || len(v.Layers) > 0 {
			return invalid("Please don't provide Handler or Runtime or Layer when the intended function PackageType is Image.")
		}
		return nil
	}
	switch {
	case v.ImageConfigResponse != nil:
		return invalid("ImageConfig is for functions with the PackageType Image.")
	case v.Runtime == "" || aws.ToString(v.Handler) == "":
		return invalid("Runtime and Handler are mandatory parameters for functions created with deployment packages.")
	case !slices.Contains(v.Runtime.Values(), v.Runtime) && !runs.MatchString(string(v.Runtime)):
		return invalid("Value %s at 'runtime' failed to satisfy constraint: Member must satisfy enum value set: %v or be a valid ARN",
			v.Runtime, v.Runtime.Values())
	case !runs.MatchString(string(v.Runtime)):
		return invalid("Runtime: Pintle runs python3.*, nodejs*.x, provided.al2, provided.al2023 and images, not %s.", v.Runtime)
	}
	return nil
}

// variableName matches the names of variables: API_Environment.
var variableName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_]*$`)

// reserved are the variables that Lambda itself sets:
// https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
var reserved = []string{
	"_HANDLER", "_X_AMZN_TRACE_ID", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_EXECUTION_ENV", "AWS_LAMBDA_FUNCTION_NAME",
	"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "AWS_LAMBDA_FUNCTION_VERSION", "AWS_LAMBDA_INITIALIZATION_TYPE", "AWS_LAMBDA_LOG_GROUP_NAME",
	"AWS_LAMBDA_LOG_STREAM_NAME", "AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"AWS_LAMBDA_RUNTIME_API", "LAMBDA_TASK_ROOT", "LAMBDA_RUNTIME_DIR",
}

func checkEnvironment(variables map[string]string) error {
	const unable = "Lambda was unable to configure your environment variables because the environment variables you have provided "
	text, _ := json.Marshal(variables) //nolint:errcheck // texts can't fail
	if len(variables) > 0 && len(text) > maxEnvironment {
		return invalid(unable+"exceeded the 4KB limit. String measured: %s", text)
	}
	var taken []string
	for name := range variables {
		if slices.Contains(reserved, name) {
			taken = append(taken, name)
		} else if !variableName.MatchString(name) {
			return invalid("Environment.Variables: the name %q must begin with a letter and have letters, digits and underscores alone.", name)
		}
	}
	if len(taken) > 0 {
		slices.Sort(taken)
		return invalid(unable+"contains reserved keys that are currently not supported for modification. Reserved keys used in this request: %s",
			strings.Join(taken, ", "))
	}
	return nil
}

// checkDestination refuses an ARN that is none of an account's resource of one of the services. "" is no destination.
func (s *Service) checkDestination(field, arn string, services ...string) error {
	if arn == "" {
		return nil
	}
	for _, service := range services {
		if _, ours := s.opts.ResourceOf(service, "", arn); ours {
			return nil
		}
	}
	return invalid("%s: %s is no resource of this account and region in %s.", field, arn, strings.Join(services, ", "))
}

package ssm

import (
	"cmp"
	"context"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// The quotas of Parameter Store: https://docs.aws.amazon.com/general/latest/gr/ssm.html
const (
	maxStandard      = 10_000
	maxAdvanced      = 100_000
	maxStandardValue = 4 << 10
	maxAdvancedValue = 8 << 10
	maxVersions      = 100
)

// defaultKey is the only key there is: that of the control plane, under the name that AWS's has.
const defaultKey = "alias/aws/ssm"

// PutParameter creates a parameter, or puts a new version of one.
func (s *Service) PutParameter(ctx context.Context, in *ssm.PutParameterInput) (*ssm.PutParameterOutput, error) {
	name := strings.TrimSpace(*in.Name)
	if err := s.checkNewName(name); err != nil {
		return nil, err
	}
	if err := s.checkPut(in); err != nil {
		return nil, err
	}
	var version *state.ParameterVersion
	user := s.caller(ctx)
	err := s.store.Update(ctx, func(tx *state.Tx) (err error) {
		p := &state.Parameter{Name: name, Tags: in.Tags}
		old, previous := named(tx.View, name), (*state.ParameterVersion)(nil)
		switch {
		case old != nil && old.Expired(s.now()):
			tx.DeleteParameter(old.Name)
		case old != nil && !aws.ToBool(in.Overwrite):
			return &types.ParameterAlreadyExists{Message: account.Message(
				"The parameter already exists. To overwrite this value, set the overwrite option in the request to true.")}
		case old != nil:
			*p = *old
			previous = tx.ParameterVersions.Get(state.ParameterVersionKey(old.Name, old.Version))
		}
		if version, err = s.next(p, previous, in); err != nil {
			return err
		}
		version.LastModifiedUser = user
		return put(tx, p, version)
	})
	if err != nil {
		return nil, err
	}
	return &ssm.PutParameterOutput{Version: version.Version, Tier: version.Tier}, nil
}

// checkPut checks what can be checked without knowing the parameter's versions.
func (s *Service) checkPut(in *ssm.PutParameterInput) error {
	switch {
	case *in.Value == "":
		return invalid("1 validation error detected: Value '' at 'value' failed to satisfy constraint: Member must have length greater " +
			"than or equal to 1.")
	case strings.Contains(*in.Value, "{{"):
		return invalid("Parameter value can't nest another parameter. Do not use \"{{}}\" in the value.")
	case aws.ToBool(in.Overwrite) && len(in.Tags) > 0:
		return invalid("Invalid request: tags and overwrite can't be used together. To create a parameter with tags, please remove " +
			"overwrite flag. To update tags for an existing parameter, please use AddTagsToResource or RemoveTagsFromResource.")
	}
	if key := aws.ToString(in.KeyId); key != "" && key != defaultKey && key != s.opts.ARN("kms", defaultKey) {
		return &types.InvalidKeyId{Message: account.Message(
			"Pintle has no KMS. SecureStrings are encrypted with the control plane's own key, which is called %s: %q isn't that.",
			defaultKey, key)}
	}
	if len(in.Tags) > account.MaxTags {
		return invalid("A parameter can have at most %d tags.", account.MaxTags)
	}
	return checkTags(in.Tags)
}

// next returns the next version of a parameter and sets what the parameter keeps of it. What the call doesn't give stays as in the
// previous version, which is nil for a new parameter.
func (s *Service) next(p *state.Parameter, previous *state.ParameterVersion, in *ssm.PutParameterInput) (*state.ParameterVersion, error) {
	v := state.ParameterVersion{DataType: "text"}
	if previous != nil {
		v = *previous
	}
	p.Version++
	v.Name = p.Name
	v.Version = p.Version
	v.Labels = nil
	v.LastModified = s.now()
	v.Type = cmp.Or(in.Type, v.Type)
	if v.Type == "" {
		return nil, invalid("A parameter type is required when you create a parameter.")
	}
	v.Description = aws.ToString(cmp.Or(in.Description, &v.Description))
	v.AllowedPattern = aws.ToString(cmp.Or(in.AllowedPattern, &v.AllowedPattern))
	v.DataType = cmp.Or(aws.ToString(in.DataType), v.DataType)
	if err := s.setPolicies(p, &v, in.Policies); err != nil {
		return nil, err
	}
	if err := setTier(p, &v, in); err != nil {
		return nil, err
	}
	if err := checkValue(&v, *in.Value); err != nil {
		return nil, err
	}
	return &v, s.setValue(&v, in)
}

// setValue sets a version's value, which it encrypts if it's a SecureString.
func (s *Service) setValue(v *state.ParameterVersion, in *ssm.PutParameterInput) error {
	v.Value = *in.Value
	v.Encrypted = nil
	v.KeyID = ""
	if v.Type == types.ParameterTypeSecureString {
		v.Value = ""
		v.Encrypted = s.opts.Vault.Encrypt(*in.Value, purpose(v))
		v.KeyID = cmp.Or(aws.ToString(in.KeyId), defaultKey)
		return nil
	}
	if aws.ToString(in.KeyId) != "" {
		return invalid("KeyId is required for SecureString type parameter only.")
	}
	return nil
}

// purpose is what a version's value is encrypted for.
func purpose(v *state.ParameterVersion) string {
	return vault.Purpose("ssm", v.Name, strconv.FormatInt(v.Version, 10))
}

// setTier sets the tier that the call asks for, or that the value needs.
func setTier(p *state.Parameter, v *state.ParameterVersion, in *ssm.PutParameterInput) error {
	tier := cmp.Or(in.Tier, p.Tier, types.ParameterTierStandard)
	needsAdvanced := len(*in.Value) > maxStandardValue || len(v.Policies) > 0
	if tier == types.ParameterTierIntelligentTiering {
		tier = cmp.Or(p.Tier, types.ParameterTierStandard)
		if needsAdvanced {
			tier = types.ParameterTierAdvanced
		}
	}
	advanced := tier == types.ParameterTierAdvanced
	switch {
	case !advanced && p.Tier == types.ParameterTierAdvanced:
		return invalid("This parameter uses the advanced-parameter tier. You can't downgrade a parameter from the advanced-parameter tier " +
			"to the standard-parameter tier. If necessary, you can delete the advanced parameter and recreate it as a standard parameter.")
	case !advanced && len(v.Policies) > 0:
		return invalid("Parameter policies can be used with the advanced-parameter tier only.")
	case !advanced && needsAdvanced:
		return invalid("Standard tier parameters support a maximum parameter value of %d characters. To create a larger parameter value, "+
			"upgrade the parameter to use the advanced-parameter tier.", maxStandardValue)
	case len(*in.Value) > maxAdvancedValue:
		return invalid("Advanced tier parameters support a maximum parameter value of %d characters.", maxAdvancedValue)
	}
	p.Tier = tier
	v.Tier = tier
	return nil
}

var imageID = regexp.MustCompile(`^ami-[0-9a-f]{8,17}$`)

// checkValue checks a value by the parameter's pattern and data type.
func checkValue(v *state.ParameterVersion, value string) error {
	if v.AllowedPattern != "" {
		pattern, err := regexp.Compile(v.AllowedPattern)
		if err != nil {
			return &types.InvalidAllowedPatternException{Message: account.Message("The allowed pattern isn't a valid regular expression: %s",
				v.AllowedPattern)}
		}
		if !pattern.MatchString(value) {
			return &types.ParameterPatternMismatchException{Message: account.Message(
				"Parameter value, cannot be validated against allowedPattern: %s", v.AllowedPattern)}
		}
	}
	switch v.DataType {
	case "text":
		return nil
	case "aws:ec2:image":
		if v.Type != types.ParameterTypeString {
			return invalid("The data type aws:ec2:image is for parameters of type String.")
		}
		if !imageID.MatchString(value) {
			return invalid("The parameter value isn't the id of an image, which the data type aws:ec2:image requires.")
		}
		return nil
	}
	return invalid("The following data type is not supported: %s (Data type names are all lowercase.)", v.DataType)
}

// put puts a parameter and its next version. The oldest of a hundred goes, unless it has a label.
func put(tx *state.Tx, p *state.Parameter, v *state.ParameterVersion) error {
	if v.Version == 1 {
		if err := checkQuota(tx.Parameters.All(), p.Tier); err != nil {
			return err
		}
	}
	versions := slices.Collect(tx.ParameterVersionsAfter(p.Name, 0))
	if len(versions) >= maxVersions {
		oldest := versions[0]
		if len(oldest.Labels) > 0 {
			return &types.ParameterMaxVersionLimitExceeded{Message: account.Message(
				"You attempted to create a new version of %s by calling the PutParameter API with the overwrite flag. Version %d, the "+
					"oldest version, can't be deleted because it has a label associated with it. Move the label to another version of "+
					"the parameter, and try again.", p.Name, oldest.Version)}
		}
		tx.ParameterVersions.Delete(oldest.Key())
	}
	tx.Parameters.Put(p)
	tx.ParameterVersions.Put(v)
	return nil
}

// checkQuota refuses one more parameter of a tier when there are as many as there may be.
func checkQuota(all iter.Seq[*state.Parameter], tier types.ParameterTier) error {
	most := maxStandard
	if tier == types.ParameterTierAdvanced {
		most = maxAdvanced
	}
	n := 0
	for p := range all {
		if p.Tier == tier {
			n++
		}
	}
	if n >= most {
		return &types.ParameterLimitExceeded{Message: account.Message("There are already %d parameters of the tier %s, the maximum.",
			most, tier)}
	}
	return nil
}

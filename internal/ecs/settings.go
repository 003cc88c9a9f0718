package ecs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// settingDefaults has each account setting's default value and the values it takes:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-account-settings.html
var settingDefaults = map[types.SettingName]struct {
	value  string
	values []string
}{
	types.SettingNameServiceLongArnFormat:            {"enabled", enabledOrDisabled},
	types.SettingNameTaskLongArnFormat:               {"enabled", enabledOrDisabled},
	types.SettingNameContainerInstanceLongArnFormat:  {"enabled", enabledOrDisabled},
	types.SettingNameAwsvpcTrunking:                  {"disabled", enabledOrDisabled},
	types.SettingNameContainerInsights:               {"disabled", []string{"enabled", "disabled", "enhanced"}},
	types.SettingNameFargateFipsMode:                 {"disabled", enabledOrDisabled},
	types.SettingNameTagResourceAuthorization:        {"off", []string{"on", "off"}},
	types.SettingNameFargateTaskRetirementWaitPeriod: {"7", []string{"0", "7", "14"}},
	types.SettingNameGuardDutyActivate:               {"off", []string{"on", "off"}},
	types.SettingNameDefaultLogDriverMode:            {"non-blocking", []string{"blocking", "non-blocking"}},
	"dualStackIPv6":                                  {"disabled", enabledOrDisabled}, // the SDK has no name for it
}

var enabledOrDisabled = []string{"enabled", "disabled"}

// root returns the ARN of the account's root user, the principal of calls that don't name one.
func (s *Service) root() string { return s.opts.Root() }

func checkSetting(name types.SettingName, value *string) error {
	d, ok := settingDefaults[name]
	if !ok {
		return invalidParameter("name must be the name of an account setting, not %q.", name)
	}
	if value != nil && !slices.Contains(d.values, *value) {
		if name == types.SettingNameFargateTaskRetirementWaitPeriod {
			if _, err := strconv.Atoi(*value); err == nil {
				return invalidParameter("The value of %s must be one of %v days, not %q.", name, d.values, *value)
			}
		}
		return invalidParameter("The value of %s must be one of %v, not %q.", name, d.values, *value)
	}
	return nil
}

// PutAccountSetting changes a setting of one principal.
func (s *Service) PutAccountSetting(ctx context.Context, in *ecs.PutAccountSettingInput) (*ecs.PutAccountSettingOutput, error) {
	setting, err := s.putSetting(ctx, in.Name, in.Value, cmp.Or(aws.ToString(in.PrincipalArn), s.root()))
	if err != nil {
		return nil, err
	}
	return &ecs.PutAccountSettingOutput{Setting: setting}, nil
}

// PutAccountSettingDefault changes a setting for all principals that don't have their own.
func (s *Service) PutAccountSettingDefault(
	ctx context.Context, in *ecs.PutAccountSettingDefaultInput,
) (*ecs.PutAccountSettingDefaultOutput, error) {
	setting, err := s.putSetting(ctx, in.Name, in.Value, "")
	if err != nil {
		return nil, err
	}
	setting.PrincipalArn = aws.String(s.root())
	return &ecs.PutAccountSettingDefaultOutput{Setting: setting}, nil
}

func (s *Service) putSetting(ctx context.Context, name types.SettingName, value *string, principal string) (*types.Setting, error) {
	if value == nil {
		return nil, invalidParameter("value must not be empty.")
	}
	if err := checkSetting(name, value); err != nil {
		return nil, err
	}
	row := &state.AccountSetting{Setting: types.Setting{Name: name, Value: value, PrincipalArn: &principal, Type: types.SettingTypeUser}}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		tx.AccountSettings.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return new(row.Setting), nil
}

// DeleteAccountSetting resets a principal's setting to the account's default.
func (s *Service) DeleteAccountSetting(ctx context.Context, in *ecs.DeleteAccountSettingInput) (*ecs.DeleteAccountSettingOutput, error) {
	if err := checkSetting(in.Name, nil); err != nil {
		return nil, err
	}
	principal := cmp.Or(aws.ToString(in.PrincipalArn), s.root())
	key := (&state.AccountSetting{Setting: types.Setting{Name: in.Name, PrincipalArn: &principal}}).Key()
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		tx.AccountSettings.Delete(key)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeleteAccountSettingOutput{Setting: s.effectiveSetting(s.store.View(), in.Name, principal)}, nil
}

// ListAccountSettings lists a principal's own settings, or with effectiveSettings all that apply to it.
func (s *Service) ListAccountSettings(_ context.Context, in *ecs.ListAccountSettingsInput) (*ecs.ListAccountSettingsOutput, error) {
	if in.Name != "" {
		if err := checkSetting(in.Name, in.Value); err != nil {
			return nil, err
		}
	}
	v := s.store.View()
	principal := cmp.Or(aws.ToString(in.PrincipalArn), s.root())
	found := map[string]types.Setting{}
	for name := range settingDefaults {
		own := v.AccountSettings.Get((&state.AccountSetting{Setting: types.Setting{Name: name, PrincipalArn: &principal}}).Key())
		if own == nil && !in.EffectiveSettings {
			continue
		}
		setting := s.effectiveSetting(v, name, principal)
		if (in.Name == "" || in.Name == name) && (in.Value == nil || *in.Value == *setting.Value) {
			found[string(name)] = *setting
		}
	}
	keys, next, err := account.Sorted(listing("ListAccountSettings"), slices.Sorted(maps.Keys(found)), optionalMax(in.MaxResults),
		in.NextToken, identity)
	if err != nil {
		return nil, err
	}
	out := &ecs.ListAccountSettingsOutput{Settings: []types.Setting{}, NextToken: next}
	for _, k := range keys {
		out.Settings = append(out.Settings, found[k])
	}
	return out, nil
}

// effectiveSetting returns the setting that applies to a principal: its own, else the account's, else ECS's default.
func (s *Service) effectiveSetting(v *state.View, name types.SettingName, principal string) *types.Setting {
	for _, p := range []string{principal, ""} {
		if row := v.AccountSettings.Get((&state.AccountSetting{Setting: types.Setting{Name: name, PrincipalArn: &p}}).Key()); row != nil {
			return &types.Setting{Name: name, Value: row.Value, PrincipalArn: &principal, Type: types.SettingTypeUser}
		}
	}
	return &types.Setting{Name: name, Value: aws.String(settingDefaults[name].value), PrincipalArn: &principal, Type: types.SettingTypeUser}
}

// optionalMax returns maxResults, or nil for 0: the SDK's struct has no other way to leave it out.
func optionalMax(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

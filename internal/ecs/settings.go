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

// settingDefaults is each account setting's value where nobody has set it, and the values it takes:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-account-settings.html
var settingDefaults = map[types.SettingName]struct {
	value  string
	values []string
}{
	types.SettingNameServiceLongArnFormat:            {"enabled", onOff},
	types.SettingNameTaskLongArnFormat:               {"enabled", onOff},
	types.SettingNameContainerInstanceLongArnFormat:  {"enabled", onOff},
	types.SettingNameAwsvpcTrunking:                  {"disabled", onOff},
	types.SettingNameContainerInsights:               {"disabled", []string{"enabled", "disabled", "enhanced"}},
	types.SettingNameFargateFipsMode:                 {"disabled", onOff},
	types.SettingNameTagResourceAuthorization:        {"off", []string{"on", "off"}},
	types.SettingNameFargateTaskRetirementWaitPeriod: {"7", []string{"0", "7", "14"}},
	types.SettingNameGuardDutyActivate:               {"off", []string{"on", "off"}},
	types.SettingNameDefaultLogDriverMode:            {"non-blocking", []string{"blocking", "non-blocking"}},
	"dualStackIPv6":                                  {"disabled", onOff}, // the SDK has no name for it
}

var onOff = []string{"enabled", "disabled"}

// root is the principal that Pintle takes every caller for.
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

// PutAccountSetting sets a setting of one principal.
func (s *Service) PutAccountSetting(ctx context.Context, in *ecs.PutAccountSettingInput) (*ecs.PutAccountSettingOutput, error) {
	setting, err := s.putSetting(ctx, in.Name, in.Value, cmp.Or(aws.ToString(in.PrincipalArn), s.root()))
	if err != nil {
		return nil, err
	}
	return &ecs.PutAccountSettingOutput{Setting: setting}, nil
}

// PutAccountSettingDefault sets a setting for all principals that have none of their own.
func (s *Service) PutAccountSettingDefault(ctx context.Context, in *ecs.PutAccountSettingDefaultInput) (*ecs.PutAccountSettingDefaultOutput, error) {
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
	if err := s.store.Update(ctx, func(tx *state.Tx) error { tx.AccountSettings.Put(row); return nil }); err != nil {
		return nil, err
	}
	return new(row.Setting), nil
}

// DeleteAccountSetting takes a principal's setting back to the account's default.
func (s *Service) DeleteAccountSetting(ctx context.Context, in *ecs.DeleteAccountSettingInput) (*ecs.DeleteAccountSettingOutput, error) {
	if err := checkSetting(in.Name, nil); err != nil {
		return nil, err
	}
	principal := cmp.Or(aws.ToString(in.PrincipalArn), s.root())
	key := (&state.AccountSetting{Setting: types.Setting{Name: in.Name, PrincipalArn: &principal}}).Key()
	if err := s.store.Update(ctx, func(tx *state.Tx) error { tx.AccountSettings.Delete(key); return nil }); err != nil {
		return nil, err
	}
	return &ecs.DeleteAccountSettingOutput{Setting: s.effective(s.store.View(), in.Name, principal)}, nil
}

// ListAccountSettings lists the settings that were made, or with effectiveSettings those that hold.
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
		setting := s.effective(v, name, principal)
		if (in.Name == "" || in.Name == name) && (in.Value == nil || *in.Value == *setting.Value) {
			found[string(name)] = *setting
		}
	}
	keys, next, err := account.Sorted(listing("ListAccountSettings"), slices.Sorted(maps.Keys(found)), maxOrNil(in.MaxResults), in.NextToken, itself)
	if err != nil {
		return nil, err
	}
	out := &ecs.ListAccountSettingsOutput{Settings: []types.Setting{}, NextToken: next}
	for _, k := range keys {
		out.Settings = append(out.Settings, found[k])
	}
	return out, nil
}

// effective is the setting that holds for a principal: its own, else the account's, else ECS's.
func (s *Service) effective(v *state.View, name types.SettingName, principal string) *types.Setting {
	for _, p := range []string{principal, ""} {
		if row := v.AccountSettings.Get((&state.AccountSetting{Setting: types.Setting{Name: name, PrincipalArn: &p}}).Key()); row != nil {
			return &types.Setting{Name: name, Value: row.Value, PrincipalArn: &principal, Type: types.SettingTypeUser}
		}
	}
	return &types.Setting{Name: name, Value: aws.String(settingDefaults[name].value), PrincipalArn: &principal, Type: types.SettingTypeUser}
}

// maxOrNil is a maxResults that the SDK's struct cannot tell from none when it is 0.
func maxOrNil(n int32) *int32 {
	if n == 0 {
		return nil
	}
	return &n
}

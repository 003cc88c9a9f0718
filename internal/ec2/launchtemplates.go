package ec2

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

const (
	maxVersions  = 10_000 // of a launch template: its quota
	maxTemplates = 200    // of a page: API_DescribeLaunchTemplates, API_DescribeLaunchTemplateVersions
)

// templateName matches the names that CreateLaunchTemplate allows.
var templateName = pattern.New(`^[a-zA-Z0-9().\-/_]{3,}$`, 128)

// templateData converts a call's launch template data to the stored type. The fields of the two types have the same
// names.
func (s *Service) templateData(ctx context.Context, in *types.RequestLaunchTemplateData) (*types.ResponseLaunchTemplateData, error) {
	if in == nil {
		return nil, refuse("MissingParameter", "The request must contain the parameter LaunchTemplateData")
	}
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	out := new(types.ResponseLaunchTemplateData)
	if err := json.Unmarshal(b, out); err != nil {
		return nil, err
	}
	for _, t := range out.TagSpecifications {
		if err := checkTags(t.Tags); err != nil {
			return nil, err
		}
	}
	if err := checkData(out); err != nil || out.ImageId == nil {
		return out, err
	}
	_, err = s.ResolveImage(ctx, *out.ImageId) // again at each launch
	return out, err
}

// CreateLaunchTemplate creates a launch template with its first version.
func (s *Service) CreateLaunchTemplate(ctx context.Context, in *ec2.CreateLaunchTemplateInput) (*ec2.CreateLaunchTemplateOutput, error) {
	if !templateName.MatchString(aws.ToString(in.LaunchTemplateName)) {
		return nil, refuse("InvalidLaunchTemplateName.MalformedException",
			"A launch template name must have 3 to 128 letters, numbers and the characters ( ) . - / _, not be '%s'.",
			aws.ToString(in.LaunchTemplateName))
	}
	if in.Operator != nil {
		return nil, refuse("UnsupportedOperation", "Operator: Pintle's launch templates belong to the account, not to a service.")
	}
	data, err := s.templateData(ctx, in.LaunchTemplateData)
	if err != nil {
		return nil, err
	}
	row := &state.LaunchTemplate{LaunchTemplate: types.LaunchTemplate{
		LaunchTemplateId:     new(state.NewEC2ID("lt")),
		LaunchTemplateName:   in.LaunchTemplateName,
		CreateTime:           new(s.now()),
		CreatedBy:            s.root(),
		DefaultVersionNumber: aws.Int64(1),
		LatestVersionNumber:  aws.Int64(1),
		Tags:                 []types.Tag{},
	}}
	for _, t := range in.TagSpecifications {
		if t.ResourceType != types.ResourceTypeLaunchTemplate {
			return nil, refuse("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", t.ResourceType)
		}
		if err := checkTags(t.Tags); err != nil {
			return nil, err
		}
		row.Tags = append(row.Tags, t.Tags...)
	}
	row.Versions = []types.LaunchTemplateVersion{s.version(row, 1, in.VersionDescription, data)}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		row, err = putOnce(s, tx, launchTemplates, in.ClientToken, in, row, func() error {
			if tx.FindLaunchTemplate("", *in.LaunchTemplateName) != nil {
				return refuse("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateLaunchTemplateOutput{LaunchTemplate: &row.LaunchTemplate}, nil
}

func (s *Service) version(t *state.LaunchTemplate, number int64, description *string,
	data *types.ResponseLaunchTemplateData) types.LaunchTemplateVersion {
	return types.LaunchTemplateVersion{
		LaunchTemplateId:   t.LaunchTemplateId,
		LaunchTemplateName: t.LaunchTemplateName,
		VersionNumber:      &number,
		VersionDescription: description,
		CreateTime:         new(s.now()),
		CreatedBy:          s.root(),
		LaunchTemplateData: data,
	}
}

// findTemplate returns the template that a call names by id or name. An empty one is none.
func findTemplate(v *state.View, id, name *string) (*state.LaunchTemplate, error) {
	id, name = given(id), given(name)
	switch {
	case id != nil && name != nil:
		return nil, refuse("InvalidParameterCombination", "LaunchTemplateId and LaunchTemplateName must not both be given")
	case id == nil && name == nil:
		return nil, refuse("MissingParameter", "Either LaunchTemplateId or LaunchTemplateName must be given")
	}
	row := v.FindLaunchTemplate(aws.ToString(id), aws.ToString(name))
	switch {
	case row != nil:
		return row, nil
	case id != nil:
		return nil, refuse("InvalidLaunchTemplateId.NotFound", "The specified launch template, with template ID %s, does not exist.", *id)
	}
	return nil, refuse("InvalidLaunchTemplateName.NotFoundException",
		"The specified launch template, with template name %s, does not exist.", *name)
}

func findVersion(v *state.View, id, name *string, version string) (*state.LaunchTemplate, *types.LaunchTemplateVersion, error) {
	row, err := findTemplate(v, id, name)
	if err != nil {
		return nil, nil, err
	}
	if found := row.Version(version); found != nil {
		return row, found, nil
	}
	return nil, nil, noVersion(row, version)
}

func noVersion(t *state.LaunchTemplate, version string) *account.Refusal {
	if _, err := strconv.ParseInt(version, 10, 64); err != nil && !strings.HasPrefix(version, "$") {
		return refuse("InvalidLaunchTemplateId.VersionNotFound", "A version must be a number, $Latest or $Default, not '%s'", version)
	}
	return refuse("InvalidLaunchTemplateId.VersionNotFound",
		"Could not find the specified version %s for the launch template with ID %s.", version, *t.LaunchTemplateId)
}

// changeTemplate changes the template that a call names.
func (s *Service) changeTemplate(ctx context.Context, id, name *string, dryRun *bool,
	change func(*state.Tx, *state.LaunchTemplate) error) (row *state.LaunchTemplate, err error) {
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := findTemplate(tx.View, id, name)
		if err != nil {
			return err
		}
		if err := checkDryRun(dryRun); err != nil {
			return err
		}
		row = new(*old)
		row.Versions = slices.Clone(old.Versions)
		if err := change(tx, row); err != nil {
			return err
		}
		tx.LaunchTemplates.Put(row)
		return nil
	})
	return row, err
}

// CreateLaunchTemplateVersion adds a version to a launch template. It may be based on another version.
func (s *Service) CreateLaunchTemplateVersion(ctx context.Context,
	in *ec2.CreateLaunchTemplateVersionInput) (*ec2.CreateLaunchTemplateVersionOutput, error) {
	if _, err := s.templateData(ctx, in.LaunchTemplateData); err != nil {
		return nil, err
	}
	made, err := s.tokenOf("launch-template-version", in.ClientToken, in)
	if err != nil {
		return nil, err
	}
	var out types.LaunchTemplateVersion
	_, err = s.changeTemplate(ctx, in.LaunchTemplateId, in.LaunchTemplateName, in.DryRun, func(tx *state.Tx, t *state.LaunchTemplate) error {
		before, err := s.before(tx, made)
		if err != nil {
			return err
		}
		if len(before) > 0 {
			if earlier := t.Version(before[0]); earlier != nil {
				out = withDefault(t, *earlier)
				return nil
			}
		}
		if err := s.addVersion(t, in); err != nil {
			return err
		}
		if made != nil {
			made.Arns = []string{strconv.FormatInt(*t.LatestVersionNumber, 10)}
			tx.IdempotencyTokens.Put(made)
		}
		out = withDefault(t, t.Versions[len(t.Versions)-1])
		return nil
	})
	if err != nil {
		return nil, err
	}
	shown := []types.LaunchTemplateVersion{out}
	if aws.ToBool(in.ResolveAlias) && s.resolveAliases(ctx, shown) == nil { // one that can't be resolved is shown as it is: the version is made
		out = shown[0]
	}
	return &ec2.CreateLaunchTemplateVersionOutput{LaunchTemplateVersion: &out}, nil
}

// addVersion adds the version that a call gives to a template.
func (s *Service) addVersion(t *state.LaunchTemplate, in *ec2.CreateLaunchTemplateVersionInput) error {
	if len(t.Versions) >= maxVersions {
		return refuse("VersionLimitExceeded", "The launch template has %d versions, which is as many as are allowed.", maxVersions)
	}
	data := new(types.ResponseLaunchTemplateData)
	if source := aws.ToString(in.SourceVersion); source != "" {
		from := t.Version(source)
		if from == nil {
			return noVersion(t, source)
		}
		*data = *from.LaunchTemplateData
	}
	b, err := json.Marshal(in.LaunchTemplateData)
	if err != nil {
		return err
	}
	if err := overlay(b, data); err != nil {
		return err
	}
	t.LatestVersionNumber = new(max(*t.LatestVersionNumber, t.Numbered) + 1)
	t.Versions = append(t.Versions, s.version(t, *t.LatestVersionNumber, in.VersionDescription, data))
	return nil
}

// resolveAliases shows the ids of images in place of the parameters that name them.
func (s *Service) resolveAliases(ctx context.Context, versions []types.LaunchTemplateVersion) error {
	for i, v := range versions {
		if v.LaunchTemplateData.ImageId == nil {
			continue
		}
		id, err := s.ResolveImage(ctx, *v.LaunchTemplateData.ImageId)
		if err != nil {
			return err
		}
		data := new(*v.LaunchTemplateData)
		data.ImageId = &id
		versions[i].LaunchTemplateData = data
	}
	return nil
}

// overlay applies the fields that a call gives to those of the source version. A field that was not given is null in
// JSON, and must not erase anything.
func overlay(given []byte, onto *types.ResponseLaunchTemplateData) error {
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(given, &members); err != nil {
		return err
	}
	for name, value := range members {
		if string(value) == "null" || string(value) == `""` {
			delete(members, name)
		}
	}
	b, err := json.Marshal(members)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, onto)
}

// withDefault returns a version as calls show it, with DefaultVersion set.
func withDefault(t *state.LaunchTemplate, v types.LaunchTemplateVersion) types.LaunchTemplateVersion {
	v.DefaultVersion = new(*v.VersionNumber == *t.DefaultVersionNumber)
	return v
}

// ModifyLaunchTemplate sets the default version.
func (s *Service) ModifyLaunchTemplate(ctx context.Context, in *ec2.ModifyLaunchTemplateInput) (*ec2.ModifyLaunchTemplateOutput, error) {
	if aws.ToString(in.DefaultVersion) == "" {
		return nil, refuse("MissingParameter", "The request must contain the parameter SetDefaultVersion")
	}
	row, err := s.changeTemplate(ctx, in.LaunchTemplateId, in.LaunchTemplateName, in.DryRun, func(_ *state.Tx, t *state.LaunchTemplate) error {
		v := t.Version(*in.DefaultVersion)
		if v == nil {
			return noVersion(t, *in.DefaultVersion)
		}
		t.DefaultVersionNumber = v.VersionNumber
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.ModifyLaunchTemplateOutput{LaunchTemplate: &row.LaunchTemplate}, nil
}

// DeleteLaunchTemplate deletes a launch template and all its versions.
func (s *Service) DeleteLaunchTemplate(ctx context.Context, in *ec2.DeleteLaunchTemplateInput) (*ec2.DeleteLaunchTemplateOutput, error) {
	var row *state.LaunchTemplate
	err := s.store.Update(ctx, func(tx *state.Tx) (err error) {
		if row, err = findTemplate(tx.View, in.LaunchTemplateId, in.LaunchTemplateName); err != nil {
			return err
		}
		if err := checkDryRun(in.DryRun); err != nil {
			return err
		}
		tx.LaunchTemplates.Delete(*row.LaunchTemplateId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteLaunchTemplateOutput{LaunchTemplate: &row.LaunchTemplate}, nil
}

// DeleteLaunchTemplateVersions deletes versions, but not the default one. Each version has its own answer.
func (s *Service) DeleteLaunchTemplateVersions(ctx context.Context,
	in *ec2.DeleteLaunchTemplateVersionsInput) (*ec2.DeleteLaunchTemplateVersionsOutput, error) {
	if n := len(in.Versions); n == 0 || n > maxTemplates {
		return nil, refuse("InvalidParameterValue", "Versions must have 1 to %d members, not %d", maxTemplates, n)
	}
	out := &ec2.DeleteLaunchTemplateVersionsOutput{}
	_, err := s.changeTemplate(ctx, in.LaunchTemplateId, in.LaunchTemplateName, in.DryRun, func(_ *state.Tx, t *state.LaunchTemplate) error {
		for _, name := range in.Versions {
			v := t.Version(name)
			if v == nil || *v.VersionNumber == *t.DefaultVersionNumber {
				code, text := types.LaunchTemplateErrorCodeLaunchTemplateVersionDoesNotExist, noVersion(t, name).Message
				if v != nil {
					code, text = types.LaunchTemplateErrorCodeUnexpectedError, "The default version cannot be deleted."
				}
				failed := types.DeleteLaunchTemplateVersionsResponseErrorItem{
					LaunchTemplateId:   t.LaunchTemplateId,
					LaunchTemplateName: t.LaunchTemplateName,
					ResponseError:      &types.ResponseError{Code: code, Message: &text},
				}
				if n, err := strconv.ParseInt(name, 10, 64); err == nil {
					failed.VersionNumber = &n
				}
				out.UnsuccessfullyDeletedLaunchTemplateVersions = append(out.UnsuccessfullyDeletedLaunchTemplateVersions, failed)
				continue
			}
			gone := *v.VersionNumber
			t.Numbered = max(t.Numbered, gone)
			out.SuccessfullyDeletedLaunchTemplateVersions = append(out.SuccessfullyDeletedLaunchTemplateVersions,
				types.DeleteLaunchTemplateVersionsResponseSuccessItem{
					LaunchTemplateId:   t.LaunchTemplateId,
					LaunchTemplateName: t.LaunchTemplateName,
					VersionNumber:      &gone,
				})
			t.Versions = slices.DeleteFunc(t.Versions, func(v types.LaunchTemplateVersion) bool { return *v.VersionNumber == gone })
			t.LatestVersionNumber = t.Versions[len(t.Versions)-1].VersionNumber
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// templateFields holds the filters of API_DescribeLaunchTemplates.
var templateFields = fields[types.LaunchTemplate]{
	"launch-template-name": func(t *types.LaunchTemplate) []string { return optional(t.LaunchTemplateName) },
}

// DescribeLaunchTemplates lists all launch templates, or some by id or name.
func (s *Service) DescribeLaunchTemplates(_ context.Context,
	in *ec2.DescribeLaunchTemplatesInput) (*ec2.DescribeLaunchTemplatesOutput, error) {
	match, err := matcher(in.Filters, templateFields, func(t *types.LaunchTemplate) []types.Tag { return t.Tags })
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	v := s.store.View()
	for _, id := range in.LaunchTemplateIds {
		if _, err := findTemplate(v, &id, nil); err != nil {
			return nil, err
		}
	}
	for _, name := range in.LaunchTemplateNames {
		if _, err := findTemplate(v, nil, &name); err != nil {
			return nil, err
		}
	}
	wanted := func(t *types.LaunchTemplate) bool {
		return len(in.LaunchTemplateIds)+len(in.LaunchTemplateNames) == 0 ||
			slices.Contains(in.LaunchTemplateIds, *t.LaunchTemplateId) || slices.Contains(in.LaunchTemplateNames, *t.LaunchTemplateName)
	}
	all := []types.LaunchTemplate{}
	for row := range v.LaunchTemplates.All() {
		if wanted(&row.LaunchTemplate) && match(&row.LaunchTemplate) {
			all = append(all, row.LaunchTemplate)
		}
	}
	all, next, err := account.Sorted(listing("DescribeLaunchTemplates", maxTemplates), all, in.MaxResults, in.NextToken,
		func(t types.LaunchTemplate) string { return *t.LaunchTemplateId })
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeLaunchTemplatesOutput{LaunchTemplates: all, NextToken: next}, nil
}

// versionFields holds those filters of API_DescribeLaunchTemplateVersions that apply to what we store.
var versionFields = fields[types.LaunchTemplateVersion]{
	"image-id": func(v *types.LaunchTemplateVersion) []string { return optional(v.LaunchTemplateData.ImageId) },
	"instance-type": func(v *types.LaunchTemplateVersion) []string {
		return []string{string(v.LaunchTemplateData.InstanceType)}
	},
	"is-default-version": func(v *types.LaunchTemplateVersion) []string {
		return []string{strconv.FormatBool(aws.ToBool(v.DefaultVersion))}
	},
}

// DescribeLaunchTemplateVersions lists the versions of a launch template, or the named versions of all templates.
func (s *Service) DescribeLaunchTemplateVersions(ctx context.Context,
	in *ec2.DescribeLaunchTemplateVersionsInput) (*ec2.DescribeLaunchTemplateVersionsOutput, error) {
	match, err := matcher(in.Filters, versionFields, nil)
	if err != nil {
		return nil, err
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	v := s.store.View()
	var templates []*state.LaunchTemplate
	switch {
	case in.LaunchTemplateId != nil || in.LaunchTemplateName != nil:
		row, err := findTemplate(v, in.LaunchTemplateId, in.LaunchTemplateName)
		if err != nil {
			return nil, err
		}
		templates = append(templates, row)
	case len(in.Versions) == 0 || slices.ContainsFunc(in.Versions, func(n string) bool { return !strings.HasPrefix(n, "$") }):
		return nil, refuse("MissingParameter", "Without a launch template, Versions must be $Latest, $Default or both")
	default:
		templates = slices.Collect(v.LaunchTemplates.All())
	}
	all := []types.LaunchTemplateVersion{}
	for _, t := range templates {
		versions, err := selectVersions(t, in)
		if err != nil {
			return nil, err
		}
		all = append(all, versions...)
	}
	all = slices.DeleteFunc(all, func(v types.LaunchTemplateVersion) bool { return !match(&v) })
	account.SortBy(all, versionKey)
	all, next, err := account.Sorted(listing("DescribeLaunchTemplateVersions", maxTemplates), all, in.MaxResults, in.NextToken, versionKey)
	if err != nil {
		return nil, err
	}
	if aws.ToBool(in.ResolveAlias) {
		err = s.resolveAliases(ctx, all)
	}
	return &ec2.DescribeLaunchTemplateVersionsOutput{LaunchTemplateVersions: all, NextToken: next}, err
}

// versionKey sorts a template's versions, newest first.
func versionKey(v types.LaunchTemplateVersion) string {
	return *v.LaunchTemplateId + " " + strconv.FormatInt(1<<40-*v.VersionNumber, 10)
}

// selectVersions returns the versions of a template that a call asks for.
func selectVersions(t *state.LaunchTemplate, in *ec2.DescribeLaunchTemplateVersionsInput) (out []types.LaunchTemplateVersion, err error) {
	bound := func(text *string, otherwise int64) (int64, error) {
		if text == nil {
			return otherwise, nil
		}
		n, err := strconv.ParseInt(*text, 10, 64)
		if err != nil {
			return 0, refuse("InvalidParameterValue", "MinVersion and MaxVersion must be numbers, not '%s'", *text)
		}
		return n, nil
	}
	low, err := bound(in.MinVersion, 0)
	if err != nil {
		return nil, err
	}
	high, err := bound(in.MaxVersion, 1<<40)
	if err != nil {
		return nil, err
	}
	if len(in.Versions) > 0 {
		seen := map[int64]bool{}
		for _, name := range in.Versions {
			v := t.Version(name)
			if v == nil {
				return nil, noVersion(t, name)
			}
			if !seen[*v.VersionNumber] {
				seen[*v.VersionNumber] = true
				out = append(out, withDefault(t, *v))
			}
		}
		return out, nil
	}
	for _, v := range t.Versions {
		if *v.VersionNumber >= low && *v.VersionNumber <= high {
			out = append(out, withDefault(t, v))
		}
	}
	return out, nil
}

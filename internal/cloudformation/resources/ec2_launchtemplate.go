package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// launchTemplate has the properties of AWS::EC2::LaunchTemplate. Its physical ID is the template's. A change of its data makes a new
// version; the default one stays the first.
type launchTemplate struct {
	LaunchTemplateName *string                          `cfn:"create"`
	LaunchTemplateData *types.RequestLaunchTemplateData `cfn:"required"`
	TagSpecifications  []types.TagSpecification
	VersionDescription *string
}

var _ = add(&kind[*launchTemplate]{
	name:       "AWS::EC2::LaunchTemplate",
	live:       liveLaunchTemplate,
	list:       listLaunchTemplates,
	identifier: []string{"LaunchTemplateId"},
	attributes: []string{"DefaultVersionNumber", "LatestVersionNumber", "LaunchTemplateId", "LaunchTemplateName"},
	create:     createLaunchTemplate,
	update:     updateLaunchTemplate,
	delete: func(ctx context.Context, s Step, id string, _ *launchTemplate) error {
		return did[ec2.DeleteLaunchTemplateOutput](ctx, s, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: &id})
	},
	read: func(ctx context.Context, s Step, id string, _ *launchTemplate) (Made, error) {
		in := &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{id}}
		out, err := call.Do[ec2.DescribeLaunchTemplatesOutput](ctx, s.Services, in)
		if err != nil {
			return Made{}, err
		}
		found := out.LaunchTemplates[0]
		return Made{Attributes: map[string]any{
			"DefaultVersionNumber": strconv.FormatInt(*found.DefaultVersionNumber, 10),
			"LatestVersionNumber":  strconv.FormatInt(*found.LatestVersionNumber, 10),
			"LaunchTemplateId":     id,
			"LaunchTemplateName":   *found.LaunchTemplateName,
		}}, nil
	},
})

func createLaunchTemplate(ctx context.Context, s Step, t *launchTemplate) (string, error) {
	name := s.named(t.LaunchTemplateName, 128)
	if id, err := madeLaunchTemplate(ctx, s, name); id != "" || err != nil {
		return id, err
	}
	out, err := call.Do[ec2.CreateLaunchTemplateOutput](ctx, s.Services, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name,
		LaunchTemplateData: t.LaunchTemplateData,
		TagSpecifications:  t.TagSpecifications,
		VersionDescription: t.VersionDescription,
	})
	if err != nil {
		return "", err
	}
	return *out.LaunchTemplate.LaunchTemplateId, nil
}

// madeLaunchTemplate returns the template that a process made before it was killed, if one did.
func madeLaunchTemplate(ctx context.Context, s Step, name string) (string, error) {
	if s.Since.IsZero() {
		return "", nil
	}
	in := &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{name}}
	out, err := call.Do[ec2.DescribeLaunchTemplatesOutput](ctx, s.Services, in)
	if err != nil {
		return "", nil //nolint:nilerr // there is none
	}
	found := out.LaunchTemplates[0]
	if found.CreateTime.Before(s.Since.Truncate(time.Second)) {
		return "", nil // somebody else's, so the creation is refused
	}
	return *found.LaunchTemplateId, nil
}

func updateLaunchTemplate(ctx context.Context, s Step, id string, before, after *launchTemplate) error {
	is, err := isLatest(ctx, s, id, after)
	if err != nil {
		return err
	}
	if !is {
		err := did[ec2.CreateLaunchTemplateVersionOutput](ctx, s, &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateId:   &id,
			LaunchTemplateData: after.LaunchTemplateData,
			VersionDescription: after.VersionDescription,
		})
		if err != nil {
			return err
		}
	}
	return tagEC2(ctx, s, id, templateTags(before), templateTags(after))
}

// isLatest reports whether the latest version is what the template asks for: when only tags change, or after a kill.
func isLatest(ctx context.Context, s Step, id string, t *launchTemplate) (bool, error) {
	out, err := call.Do[ec2.DescribeLaunchTemplateVersionsOutput](ctx, s.Services, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: &id,
		Versions:         []string{"$Latest"},
	})
	if err != nil {
		return false, err
	}
	asked, err := json.Marshal(t.LaunchTemplateData)
	if err != nil {
		return false, err
	}
	// The data that is described has another type than what is asked for, with the same names.
	kept := new(types.ResponseLaunchTemplateData)
	if err := json.Unmarshal(asked, kept); err != nil {
		return false, err
	}
	latest := out.LaunchTemplateVersions[0]
	a, err := json.Marshal(kept)
	if err != nil {
		return false, err
	}
	b, err := json.Marshal(latest.LaunchTemplateData)
	return bytes.Equal(a, b) && aws.ToString(latest.VersionDescription) == aws.ToString(t.VersionDescription), err
}

// templateTags returns the tags of the launch template itself.
func templateTags(t *launchTemplate) (tags []types.Tag) {
	for _, spec := range t.TagSpecifications {
		tags = append(tags, spec.Tags...)
	}
	return tags
}

// tagEC2 changes the tags of something of EC2's.
func tagEC2(ctx context.Context, s Step, id string, before, after []types.Tag) error {
	kept := map[string]bool{}
	for _, t := range after {
		kept[aws.ToString(t.Key)] = true
	}
	var gone []types.Tag
	for _, t := range before {
		if !kept[aws.ToString(t.Key)] {
			gone = append(gone, types.Tag{Key: t.Key})
		}
	}
	if len(gone) > 0 {
		in := &ec2.DeleteTagsInput{Resources: []string{id}, Tags: gone}
		if err := did[ec2.DeleteTagsOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if len(after) == 0 {
		return nil
	}
	return did[ec2.CreateTagsOutput](ctx, s, &ec2.CreateTagsInput{Resources: []string{id}, Tags: after})
}

// liveLaunchTemplate reads the latest version, which is the one that the stack has made.
func liveLaunchTemplate(ctx context.Context, s Step, id string, _ *launchTemplate) (*launchTemplate, error) {
	in := &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{id}}
	out, err := call.Do[ec2.DescribeLaunchTemplatesOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	versions, err := call.Do[ec2.DescribeLaunchTemplateVersionsOutput](ctx, s.Services, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: &id,
		Versions:         []string{"$Latest"},
	})
	if err != nil {
		return nil, err
	}
	is, latest := out.LaunchTemplates[0], versions.LaunchTemplateVersions[0]
	live := &launchTemplate{LaunchTemplateName: is.LaunchTemplateName, VersionDescription: latest.VersionDescription}
	if tags := ownTags(is.Tags, ec2TagPair); len(tags) > 0 {
		live.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: tagList(tags, ec2Tag)}}
	}
	live.LaunchTemplateData, err = reshape[types.RequestLaunchTemplateData](latest.LaunchTemplateData)
	return live, err
}

func listLaunchTemplates(ctx context.Context, s Step, _ *launchTemplate) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[ec2.DescribeLaunchTemplatesOutput](ctx, s.Services, &ec2.DescribeLaunchTemplatesInput{NextToken: token})
		if err != nil {
			return nil, nil, err
		}
		for _, x := range out.LaunchTemplates {
			ids = append(ids, *x.LaunchTemplateId)
		}
		return ids, out.NextToken, nil
	})
}

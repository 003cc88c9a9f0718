package lambda

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/state"
)

// maxLayers is the most layers of a function.
const maxLayers = 5

func (s *Service) layerARN(name string) string { return s.opts.ARN("lambda", "layer:"+name) }

// layerName reads the name of a layer, alone or in an ARN.
func (s *Service) layerName(given *string) string {
	if name, is := s.opts.ResourceOf("lambda", "layer:", aws.ToString(given)); is {
		name, _, _ = strings.Cut(name, ":")
		return name
	}
	return aws.ToString(given)
}

// useLayers gives a version the layers with these ARNs.
func (s *Service) useLayers(v *state.View, arns []string, to *state.FunctionVersion) error {
	if len(arns) > maxLayers {
		return invalid("Cannot reference more than %d layers.", maxLayers)
	}
	to.Layers, to.Code.Layers, to.Code.LayersUnzipped = nil, nil, 0
	given := map[string]string{}
	for _, arn := range arns {
		name, _ := s.opts.ResourceOf("lambda", "layer:", arn)
		row := v.LayerVersions.Get(name)
		if row == nil || row.Deleted {
			return invalid("Layer version %s does not exist.", arn)
		}
		if other, twice := given[row.Name]; twice {
			return invalid("Two different versions of the same layer are not allowed to be referenced in the same function. "+
				"%s and %s are versions of the same layer", other, arn)
		}
		given[row.Name] = arn
		to.Layers = append(to.Layers, types.Layer{Arn: row.LayerVersionArn, CodeSize: row.Content.CodeSize})
		to.Code.Layers = append(to.Code.Layers, row.SHA256)
		to.Code.LayersUnzipped += row.Unzipped
	}
	return checkTogether(to)
}

// PublishLayerVersion keeps another version of a layer.
func (s *Service) PublishLayerVersion(ctx context.Context, in *lambda.PublishLayerVersionInput) (*lambda.PublishLayerVersionOutput, error) {
	c := in.Content
	if c == nil {
		return nil, invalid("Please provide a source for layer content.")
	}
	if c.S3ObjectStorageMode != "" {
		return nil, invalid("Content.S3ObjectStorageMode: Pintle copies content out of its bucket.")
	}
	got, err := s.bring(ctx, code{zip: c.ZipFile, bucket: c.S3Bucket, key: c.S3Key, version: c.S3ObjectVersion}, types.PackageTypeZip)
	if err != nil {
		return nil, err
	}
	defer s.letGo(got)
	name := s.layerName(in.LayerName)
	row := &state.LayerVersion{Name: name, SHA256: got.SHA256, Unzipped: got.Unzipped}
	row.Content = types.LayerVersionContentOutput{CodeSha256: &got.Sum, CodeSize: got.Size}
	row.CompatibleArchitectures, row.CompatibleRuntimes = in.CompatibleArchitectures, in.CompatibleRuntimes
	row.Description, row.LicenseInfo = aws.String(aws.ToString(in.Description)), in.LicenseInfo
	row.CreatedDate = s.lastModified()
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		row.Version = 1
		for other := range tx.LayersNamed(name) {
			row.Version = max(row.Version, other.Version+1)
		}
		row.LayerVersionArn = aws.String(s.layerARN(name) + ":" + strconv.FormatInt(row.Version, 10))
		tx.LayerVersions.Put(row)
		return s.checkStored(tx)
	})
	if err != nil {
		return nil, err
	}
	return &lambda.PublishLayerVersionOutput{
		CompatibleArchitectures: row.CompatibleArchitectures, CompatibleRuntimes: row.CompatibleRuntimes, Content: s.contentOf(ctx, row),
		CreatedDate: row.CreatedDate, Description: row.Description, LayerArn: aws.String(s.layerARN(name)),
		LayerVersionArn: row.LayerVersionArn, LicenseInfo: row.LicenseInfo, Version: row.Version,
	}, nil
}

func (s *Service) layer(v *state.View, name *string, version int64) (*state.LayerVersion, error) {
	if version < 1 {
		return nil, invalid("Layer Version Cannot be less than 1.")
	}
	row := v.LayerVersions.Get(state.FunctionKey(s.layerName(name), strconv.FormatInt(version, 10)))
	if row == nil || row.Deleted {
		return nil, notFound("The resource you requested does not exist.")
	}
	return row, nil
}

// contentOf returns a layer's content with a URL to fetch it from.
func (s *Service) contentOf(ctx context.Context, row *state.LayerVersion) *types.LayerVersionContentOutput {
	c := row.Content
	c.Location = s.location(ctx, row.SHA256)
	return &c
}

// GetLayerVersion returns a version of a layer.
func (s *Service) GetLayerVersion(ctx context.Context, in *lambda.GetLayerVersionInput) (*lambda.GetLayerVersionOutput, error) {
	row, err := s.layer(s.store.View(), in.LayerName, aws.ToInt64(in.VersionNumber))
	if err != nil {
		return nil, err
	}
	return &lambda.GetLayerVersionOutput{
		CompatibleArchitectures: row.CompatibleArchitectures, CompatibleRuntimes: row.CompatibleRuntimes, Content: s.contentOf(ctx, row),
		CreatedDate: row.CreatedDate, Description: row.Description, LayerArn: aws.String(s.layerARN(row.Name)),
		LayerVersionArn: row.LayerVersionArn, LicenseInfo: row.LicenseInfo, Version: row.Version,
	}, nil
}

// GetLayerVersionByArn returns a version of a layer.
func (s *Service) GetLayerVersionByArn(
	ctx context.Context, in *lambda.GetLayerVersionByArnInput,
) (*lambda.GetLayerVersionByArnOutput, error) {
	key, _ := s.opts.ResourceOf("lambda", "layer:", aws.ToString(in.Arn))
	row := s.store.View().LayerVersions.Get(key)
	if row == nil || row.Deleted {
		return nil, notFound("The resource you requested does not exist.")
	}
	return &lambda.GetLayerVersionByArnOutput{
		CompatibleArchitectures: row.CompatibleArchitectures, CompatibleRuntimes: row.CompatibleRuntimes, Content: s.contentOf(ctx, row),
		CreatedDate: row.CreatedDate, Description: row.Description, LayerArn: aws.String(s.layerARN(row.Name)),
		LayerVersionArn: row.LayerVersionArn, LicenseInfo: row.LicenseInfo, Version: row.Version,
	}, nil
}

// DeleteLayerVersion deletes a version of a layer. Functions that have it keep it.
func (s *Service) DeleteLayerVersion(ctx context.Context, in *lambda.DeleteLayerVersionInput) (*lambda.DeleteLayerVersionOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.layer(tx.View, in.LayerName, aws.ToInt64(in.VersionNumber))
		if aws.ToInt64(in.VersionNumber) < 1 {
			return err
		}
		if err != nil {
			return nil //nolint:nilerr // as on AWS, what isn't there is deleted
		}
		row := *old
		row.Deleted = true
		tx.LayerVersions.Put(&row)
		return nil
	})
	return &lambda.DeleteLayerVersionOutput{}, err
}

// suits reports whether a layer is for a runtime and an architecture, if any are asked for.
func suits(l *state.LayerVersion, runtime types.Runtime, machine types.Architecture) bool {
	has := func(asked string, all []string) bool {
		if asked == "" {
			return true
		}
		for _, one := range all {
			if one == asked {
				return true
			}
		}
		return false
	}
	var runtimes, machines []string
	for _, r := range l.CompatibleRuntimes {
		runtimes = append(runtimes, string(r))
	}
	for _, a := range l.CompatibleArchitectures {
		machines = append(machines, string(a))
	}
	return !l.Deleted && has(string(runtime), runtimes) && has(string(machine), machines)
}

// ListLayerVersions lists the versions of a layer, the newest first.
func (s *Service) ListLayerVersions(_ context.Context, in *lambda.ListLayerVersionsInput) (*lambda.ListLayerVersionsOutput, error) {
	var rows []types.LayerVersionsListItem
	for l := range s.store.View().LayersNamed(s.layerName(in.LayerName)) {
		if suits(l, in.CompatibleRuntime, in.CompatibleArchitecture) {
			rows = append(rows, l.LayerVersionsListItem)
		}
	}
	rows, next, err := page("layer versions", rows, in.MaxItems, in.Marker, func(l types.LayerVersionsListItem) string {
		return strconv.FormatInt(1e12-l.Version, 10)
	})
	if err != nil {
		return nil, err
	}
	return &lambda.ListLayerVersionsOutput{LayerVersions: rows, NextMarker: next}, nil
}

// ListLayers lists layers by their newest versions.
func (s *Service) ListLayers(_ context.Context, in *lambda.ListLayersInput) (*lambda.ListLayersOutput, error) {
	newest := map[string]*state.LayerVersion{}
	for l := range s.store.View().LayerVersions.All() {
		if old := newest[l.Name]; suits(l, in.CompatibleRuntime, in.CompatibleArchitecture) && (old == nil || old.Version < l.Version) {
			newest[l.Name] = l
		}
	}
	var rows []types.LayersListItem
	for name, l := range newest {
		rows = append(rows, types.LayersListItem{
			LayerArn: aws.String(s.layerARN(name)), LayerName: &name, LatestMatchingVersion: &l.LayerVersionsListItem,
		})
	}
	rows, next, err := page("layers", rows, in.MaxItems, in.Marker, func(l types.LayersListItem) string { return *l.LayerName })
	if err != nil {
		return nil, err
	}
	return &lambda.ListLayersOutput{Layers: rows, NextMarker: next}, nil
}

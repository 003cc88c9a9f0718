package resources

import "context"

// cdkMetadata has the property of AWS::CDK::Metadata, which CDK adds to its templates. It stands for nothing.
type cdkMetadata struct {
	Analytics *string
}

var _ = add(&kind[*cdkMetadata]{
	name:   "AWS::CDK::Metadata",
	create: func(_ context.Context, s Step, _ *cdkMetadata) (string, error) { return s.generated(255), nil },
	update: func(context.Context, Step, string, *cdkMetadata, *cdkMetadata) error { return nil },
	delete: func(context.Context, Step, string, *cdkMetadata) error { return nil },
})

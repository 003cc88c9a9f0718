package node

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/exposition"
	"github.com/pintle/pintle/internal/node/dataset"
)

// dataSets are the node's part of the machine's cache of data sets. Nodes of one process share it.
type dataSets struct {
	cache   *dataset.Cache
	objects Objects
	node    string // owns the directories of its tasks
}

// Provide implements engine.DataSets.
func (d *dataSets) Provide(ctx context.Context, role func() *acs.IAMRoleCredentials, source, name string) error {
	s, err := dataset.Parse(source)
	if err != nil {
		return err
	}
	return d.cache.Provide(ctx, asRole{d.objects, role}, s, filepath.Join(d.node, name))
}

// Path implements engine.DataSets.
func (d *dataSets) Path(name string) string { return d.cache.Path(filepath.Join(d.node, name)) }

// Names implements engine.DataSets.
func (d *dataSets) Names() ([]string, error) { return d.cache.Names(d.node) }

// Remove implements engine.DataSets.
func (d *dataSets) Remove(task string) error { return d.cache.Remove(filepath.Join(d.node, task)) }

// asRole reads objects with a role's credentials of the moment, which change while much is read.
type asRole struct {
	objects Objects
	role    func() *acs.IAMRoleCredentials
}

func (r asRole) options(o *s3.Options) {
	o.RetryMaxAttempts = maxTries
	o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		role := r.role()
		if role == nil {
			return aws.Credentials{}, errors.New("the task has no task role any more")
		}
		return as(*role).Retrieve(ctx)
	})
}

// ListObjectsV2 implements dataset.Client.
func (r asRole) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	out, err := r.objects.ListObjectsV2(ctx, in, r.options)
	return out, short(err)
}

// HeadObject implements dataset.Client.
func (r asRole) HeadObject(ctx context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	out, err := r.objects.HeadObject(ctx, in, r.options)
	return out, short(err)
}

// GetObject implements dataset.Client.
func (r asRole) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	out, err := r.objects.GetObject(ctx, in, r.options)
	return out, short(err)
}

// The metrics of a cache of data sets.
var (
	dataSetsFetched = exposition.Metric{
		Name: "pintle_dataset_fetched_bytes_total", Counter: true,
		Help: "Bytes of data sets that came from S3 since the agent started.",
	}
	dataSetsReused = exposition.Metric{
		Name: "pintle_dataset_reused_bytes_total", Counter: true,
		Help: "Bytes of data sets that tasks had from the cache since the agent started.",
	}
	dataSetsSize = exposition.Metric{Name: "pintle_dataset_cache_bytes", Help: "What the cache of data sets takes on the disk."}
)

// ExposeDataSets adds a cache of data sets to a page of metrics.
func ExposeDataSets(cache *dataset.Cache, page *exposition.Page) {
	f := cache.Figures()
	page.Add(dataSetsFetched, float64(f.Fetched))
	page.Add(dataSetsReused, float64(f.Reused))
	page.Add(dataSetsSize, float64(f.Size))
}

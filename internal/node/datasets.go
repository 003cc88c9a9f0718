package node

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pintle/pintle/internal/acs"
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

// dataSetMetric is a metric of the cache of data sets.
func dataSetMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, nil, nil)
}

var (
	dataSetsFetched = dataSetMetric("pintle_dataset_fetched_bytes_total", "Bytes of data sets that came from S3 since the agent started.")
	dataSetsReused  = dataSetMetric("pintle_dataset_reused_bytes_total", "Bytes of data sets that tasks had from the cache since the agent started.")
	dataSetsSize    = dataSetMetric("pintle_dataset_cache_bytes", "What the cache of data sets takes on the disk.")
)

// DataSetMetrics exports a cache of data sets to Prometheus.
type DataSetMetrics struct{ *dataset.Cache }

// Describe implements prometheus.Collector.
func (DataSetMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- dataSetsFetched
	out <- dataSetsReused
	out <- dataSetsSize
}

// Collect implements prometheus.Collector.
func (m DataSetMetrics) Collect(out chan<- prometheus.Metric) {
	f := m.Figures()
	out <- prometheus.MustNewConstMetric(dataSetsFetched, prometheus.CounterValue, float64(f.Fetched))
	out <- prometheus.MustNewConstMetric(dataSetsReused, prometheus.CounterValue, float64(f.Reused))
	out <- prometheus.MustNewConstMetric(dataSetsSize, prometheus.GaugeValue, float64(f.Size))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/node/dataset"
)

// mountCmd shows a data set of S3 as a directory here, as tasks with a volume of the driver pintle-s3 have it.
type mountCmd struct {
	endpointFlags
	Cache  string
	Budget int64
	URI    string
	Dir    string
}

func (c *mountCmd) verb() *cobra.Command {
	const short = "Fetch a data set from S3, through a node's cache, into a new directory."
	cmd := newVerb("mount [flags] s3://BUCKET/PREFIX DIRECTORY", short, c.arguments, c.Run)
	cmd.Long = "The directory appears once all is there, and doesn't change with the bucket. Its files are read-only, and share the disk " +
		"with the cache that tasks' volumes of the driver pintle-s3 are read through. Remove it with rm -r."
	f := flags{cmd.Flags()}
	c.define(f)
	f.path(
		&c.Cache, "dataset-cache", "DIRECTORY", "~/.pintle/machine/datasets",
		"The cache, on the file system of the directory; as pintle up and agent have it.",
	)
	f.bytes(&c.Budget, "dataset-budget", 0, "How much the cache may keep; default a quarter of the file system.")
	return cmd
}

func (c *mountCmd) arguments(_ *cobra.Command, args []string) error {
	if len(args) != 2 {
		return errors.New("expected s3://BUCKET/PREFIX and a directory")
	}
	c.URI, c.Dir = args[0], args[1]
	_, err := dataset.Parse(c.URI)
	return err
}

// Run fetches the data set.
func (c *mountCmd) Run(ctx context.Context) error {
	if _, err := os.Lstat(c.Dir); err == nil {
		return fmt.Errorf("%s is there already", c.Dir)
	}
	source, err := dataset.Parse(c.URI)
	if err != nil {
		return err
	}
	config, err := awsConfig(c.Endpoint)
	if err != nil {
		return err
	}
	cache, err := openDataSets(c.Cache, c.Budget)
	if err != nil {
		return err
	}
	name := filepath.Join("mount", fmt.Sprint(os.Getpid()))
	if err := cache.Remove(name); err != nil { // of a process that was killed
		return err
	}
	defer cache.Remove(name) //nolint:errcheck // it's gone already when all went well
	objects := s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true })
	if err := cache.Provide(ctx, objects, source, name); err != nil {
		return err
	}
	err = os.Rename(cache.Path(name), c.Dir)
	if errors.Is(err, syscall.EXDEV) {
		return fmt.Errorf("%s is on another file system than the cache %s: choose a cache there with --dataset-cache", c.Dir, c.Cache)
	}
	return err
}

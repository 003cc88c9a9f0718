// Command recommend stands in for a training job on GPUs. It takes a data set from S3, counts which films are watched together, a part of the
// data set for each GPU that it may use, and puts the recommendations for each viewer into S3. It computes on the CPU, so it also runs on
// machines without a GPU.
//
// As in the guide, the environment says what is trained, and a task may override it: DATA_URL and RESULTS_URL, such as s3://BUCKET/KEY, and
// TRAINING_COMMAND, "train" or "mpirun -np 4 train", which uses four GPUs at a time, with "-e N" for more epochs.
package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	gpus := visible()
	fmt.Printf("GPUs: %s\n", cmp.Or(strings.Join(gpus, " "), "none"))
	workers, epochs, err := parse(cmp.Or(os.Getenv("TRAINING_COMMAND"), "train"))
	if err != nil {
		return err
	}
	if workers > max(len(gpus), 1) {
		return fmt.Errorf("%d workers need a GPU each, and there are %d", workers, len(gpus))
	}
	store := open()
	viewers, err := store.read(ctx, os.Getenv("DATA_URL"))
	if err != nil {
		return err
	}
	fmt.Printf("%d viewers from %s\n", len(viewers), os.Getenv("DATA_URL"))
	began := time.Now()
	var together counts
	for epoch := range epochs {
		together = train(viewers, workers)
		fmt.Printf("epoch %d of %d: %d pairs of films\n", epoch+1, epochs, len(together))
	}
	took := time.Since(began)
	fmt.Printf("trained on %d workers: %.0f viewers/s\n", workers, float64(len(viewers)*epochs)/took.Seconds())
	if err := store.write(ctx, os.Getenv("RESULTS_URL"), recommendations(viewers, together)); err != nil {
		return err
	}
	fmt.Println("results:", os.Getenv("RESULTS_URL"))
	return nil
}

// visible returns the ids of the GPUs that the container may use.
func visible() []string {
	ids := os.Getenv("NVIDIA_VISIBLE_DEVICES")
	if ids == "" || ids == "void" || ids == "none" {
		return nil
	}
	return strings.Split(ids, ",")
}

// parse reads a training command.
func parse(command string) (workers, epochs int, err error) {
	workers, epochs = 1, 1
	words := strings.Fields(command)
	if len(words) > 3 && words[0] == "mpirun" && words[1] == "-np" {
		if workers, err = strconv.Atoi(words[2]); err != nil || workers < 1 {
			return 0, 0, fmt.Errorf("TRAINING_COMMAND: %q is no number of workers", words[2])
		}
		words = words[3:]
	}
	if len(words) == 3 && words[1] == "-e" {
		if epochs, err = strconv.Atoi(words[2]); err != nil || epochs < 1 {
			return 0, 0, fmt.Errorf("TRAINING_COMMAND: %q is no number of epochs", words[2])
		}
		words = words[:1]
	}
	if len(words) != 1 || words[0] != "train" {
		return 0, 0, fmt.Errorf("TRAINING_COMMAND is %q; it must be [mpirun -np WORKERS] train [-e EPOCHS]", command)
	}
	return workers, epochs, nil
}

// viewer is a line of the data set: a name, a tab, and the films that were watched, with commas between them.
type viewer struct {
	name  string
	films []string
}

// pair are two films, and counts how many viewers have watched both.
type (
	pair   struct{ a, b string }
	counts map[pair]int
)

// train counts, a part of the viewers for each worker, and adds up.
func train(viewers []viewer, workers int) counts {
	parts := make([]counts, workers)
	var wait sync.WaitGroup
	for w := range workers {
		wait.Go(func() {
			parts[w] = counts{}
			for i := w; i < len(viewers); i += workers {
				for _, a := range viewers[i].films {
					for _, b := range viewers[i].films {
						if a != b {
							parts[w][pair{a, b}]++
						}
					}
				}
			}
		})
	}
	wait.Wait()
	all := counts{}
	for _, part := range parts {
		for p, n := range part {
			all[p] += n
		}
	}
	return all
}

const best = 3

// recommendations are the films that each viewer hasn't seen and that are watched most with those that they have.
func recommendations(viewers []viewer, together counts) []byte {
	films := map[string]bool{}
	for p := range together {
		films[p.a] = true
	}
	var out bytes.Buffer
	for _, v := range viewers {
		score := map[string]int{}
		for film := range films {
			for _, seen := range v.films {
				score[film] += together[pair{film, seen}]
			}
		}
		for _, seen := range v.films {
			delete(score, seen)
		}
		ranked := slices.SortedFunc(maps.Keys(score), func(a, b string) int { return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b)) })
		fmt.Fprintf(&out, "%s\t%s\n", v.name, strings.Join(ranked[:min(best, len(ranked))], ","))
	}
	return out.Bytes()
}

// objects are what the program reads and writes.
type objects struct{ client *s3.Client }

// open returns S3 as a task has it: with its role's credentials, from where ECS says that they are.
func open() objects {
	role := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		role = "http://169.254.170.2" + path
	}
	c := aws.Config{
		Region: cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), "us-east-1"),
		Credentials: aws.NewCredentialsCache(endpointcreds.New(role, func(o *endpointcreds.Options) {
			o.AuthorizationToken = os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
		})),
	}
	endpoint := os.Getenv("AWS_ENDPOINT_URL")
	if endpoint != "" {
		c.BaseEndpoint = &endpoint
	}
	return objects{s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = endpoint != "" })}
}

// place splits s3://BUCKET/KEY.
func place(url string) (bucket, key string, err error) {
	rest, isS3 := strings.CutPrefix(url, "s3://")
	bucket, key, hasKey := strings.Cut(rest, "/")
	if !isS3 || !hasKey || bucket == "" || key == "" {
		return "", "", fmt.Errorf("%q isn't of the form s3://BUCKET/KEY", url)
	}
	return bucket, key, nil
}

// read reads the data set.
func (o objects) read(ctx context.Context, url string) (all []viewer, err error) {
	bucket, key, err := place(url)
	if err != nil {
		return nil, fmt.Errorf("DATA_URL: %w", err)
	}
	out, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, err
	}
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, films, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			return nil, fmt.Errorf("%s: a line has no tab: %q", url, line)
		}
		all = append(all, viewer{name, strings.Split(films, ",")})
	}
	return all, nil
}

func (o objects) write(ctx context.Context, url string, body []byte) error {
	bucket, key, err := place(url)
	if err != nil {
		return fmt.Errorf("RESULTS_URL: %w", err)
	}
	_, err = o.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(body), ContentType: aws.String("text/tab-separated-values")})
	return err
}

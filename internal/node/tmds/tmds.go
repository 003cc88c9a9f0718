// Package tmds is the task metadata endpoint. Over HTTP it gives a container its metadata, its resource use and its role's credentials, and
// lets it protect its task from scale-in. The token in the URL identifies the container; nobody else can guess it. The agent serves the
// endpoint on loopback.
package tmds

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Tasks looks up the node's tasks.
type Tasks interface {
	ByToken(token string) (r *engine.Record, container string, ok bool)
	Task(arn string) (r *engine.Record, ok bool)
	Credentials(id string) (c acs.IAMRoleCredentials, taskArn string, ok bool)
}

// Stats reads a container's resource use.
type Stats interface {
	Stats(ctx context.Context, id string) (runtime.Stats, error)
}

// ECS is the part of the ECS client that the endpoint uses.
type ECS interface {
	GetTaskProtection(context.Context, *ecs.GetTaskProtectionInput, ...func(*ecs.Options)) (*ecs.GetTaskProtectionOutput, error)
	UpdateTaskProtection(context.Context, *ecs.UpdateTaskProtectionInput, ...func(*ecs.Options)) (*ecs.UpdateTaskProtectionOutput, error)
	ListTagsForResource(context.Context, *ecs.ListTagsForResourceInput, ...func(*ecs.Options)) (*ecs.ListTagsForResourceOutput, error)
}

// Options configure the endpoint.
type Options struct {
	Tasks    Tasks
	Runtime  Stats
	ECS      ECS
	Region   string
	Zone     string
	Instance func() string // the container instance's ARN
	// Metadata is the instance metadata service for containers that share the machine's network, or nil if it has none of Pintle's.
	Metadata http.Handler
	// Functions returns the Lambda Runtime API for the task that alone is served, if it's a function's environment; nil if the node has none.
	Functions func(taskArn string) http.Handler
	Log       *slog.Logger
}

// Server is the endpoint, an http.Handler.
type Server struct {
	opts Options
	only string // the ARN of the only task that is served; empty for all
	mux  *http.ServeMux

	mu      sync.Mutex
	samples map[string]sample // the last one of each container
}

// New returns the endpoint.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return newServer(o, "")
}

// For returns the endpoint for the containers of one task. Ids of other tasks are unknown there, even if a container has learned one.
func (s *Server) For(taskArn string) *Server { return newServer(s.opts, taskArn) }

func newServer(o Options, only string) *Server {
	s := &Server{opts: o, only: only, mux: http.NewServeMux(), samples: map[string]sample{}}
	for _, version := range []string{"/v3", "/v4"} {
		s.get(version+"/{token}", s.identify, s.container)
		s.get(version+"/{token}/task", s.identify, s.task)
		s.get(version+"/{token}/taskWithTags", s.identify, s.taskWithTags)
		s.get(version+"/{token}/stats", s.identify, s.stats)
		s.get(version+"/{token}/task/stats", s.identify, s.taskStats)
	}
	for path, answer := range map[string]answer{"": s.task, "/{id}": s.container} {
		s.get("/v2/metadata"+path, s.identifyByNetwork, answer)
	}
	for path, answer := range map[string]answer{"": s.taskStats, "/{id}": s.stats} {
		s.get("/v2/stats"+path, s.identifyByNetwork, answer)
	}
	s.mux.HandleFunc("GET /v2/credentials/{id}", s.credentials)
	s.mux.HandleFunc("/imds/{token}/", s.instance)
	if o.Functions != nil && only != "" {
		s.mux.Handle("/2018-06-01/", o.Functions(only))
	}
	const protection = "/api/{token}/task-protection/v1/state"
	s.mux.HandleFunc("GET "+protection, s.getProtection)
	s.mux.HandleFunc("PUT "+protection, s.putProtection)
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Serve serves the endpoint until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	web := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		ErrorLog:          slog.NewLogLogger(s.opts.Log.Handler(), slog.LevelWarn),
	}
	stop := context.AfterFunc(ctx, func() { web.Close() }) //nolint:errcheck // Serve returns it
	defer stop()
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// caller is the container that makes a request.
type caller struct {
	record *engine.Record
	name   string
}

// answer returns what a caller asks for, to be encoded as JSON.
type answer func(context.Context, caller) (any, error)

// get registers a path that returns what answer does, to containers only.
func (s *Server) get(path string, identify func(http.ResponseWriter, *http.Request) (caller, bool), answer answer) {
	s.mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		c, ok := identify(w, r)
		if !ok {
			return
		}
		body, err := answer(r.Context(), c)
		if err != nil {
			s.opts.Log.Warn("the metadata endpoint cannot answer", "path", path, "task", c.record.Task.Arn, "error", err)
			write(w, http.StatusInternalServerError, err.Error())
			return
		}
		write(w, http.StatusOK, body)
	})
}

// serves reports whether the endpoint answers a task's containers.
func (s *Server) serves(taskArn string) bool { return s.only == "" || s.only == taskArn }

// identify finds the container that makes a request, or answers 404.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) (caller, bool) {
	record, name, ok := s.opts.Tasks.ByToken(r.PathValue("token"))
	if ok = ok && s.serves(record.Task.Arn); !ok {
		write(w, http.StatusNotFound, "there is no container with this id")
	}
	return caller{record, name}, ok
}

// identifyByNetwork finds the task in whose own network a request is made, and the container that this names by its id, if it names one; or it
// answers 404. Version 2 has no tokens, and is for mode awsvpc alone:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-metadata-endpoint-v2.html
func (s *Server) identifyByNetwork(w http.ResponseWriter, r *http.Request) (caller, bool) {
	id := r.PathValue("id")
	if record, ok := s.opts.Tasks.Task(s.only); ok && record.Task.NetworkMode == "awsvpc" {
		if id == "" {
			return caller{record, ""}, true
		}
		for name := range record.Containers {
			if record.RuntimeID(name) == id {
				return caller{record, name}, true
			}
		}
	}
	write(w, http.StatusNotFound, "there is no task of mode awsvpc here, or no container with this id")
	return caller{}, false
}

// instance is the instance metadata service, for whoever knows a container's token.
func (s *Server) instance(w http.ResponseWriter, r *http.Request) {
	if s.opts.Metadata == nil {
		write(w, http.StatusNotFound, "this machine has no instance metadata service of Pintle's")
		return
	}
	if _, ok := s.identify(w, r); ok {
		http.StripPrefix("/imds/"+r.PathValue("token"), s.opts.Metadata).ServeHTTP(w, r)
	}
}

// write writes a response in JSON. An error here means that the container has gone.
func write(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body) //nolint:errcheck // see above
}

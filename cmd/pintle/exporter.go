package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/pintle/pintle/internal/exposition"
	"github.com/pintle/pintle/internal/node"
	"github.com/pintle/pintle/internal/node/dataset"
)

// serveMetrics serves the nodes' GPUs and the cache of data sets to Prometheus at /metrics, until ctx ends. If the address is taken, for example
// by a dcgm-exporter, it only logs that, so that the node can run tasks.
func serveMetrics(ctx context.Context, address string, cache *dataset.Cache, nodes []*node.Agent, log *slog.Logger) error {
	if address == "" {
		return nil
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		log.Warn("the GPUs' metrics are not served; choose another address with --metrics, or with --metrics '' none", "error", err)
		return nil
	}
	began := time.Now()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var page exposition.Page
		page.Add(exposition.Metric{Name: "pintle_build_info", Help: "The version that runs."}, 1, exposition.Label{Name: "version", Value: version})
		page.AddProcess(began)
		for _, n := range nodes {
			n.Expose(&page)
		}
		if cache != nil {
			node.ExposeDataSets(cache, &page)
		}
		w.Header().Set("Content-Type", exposition.ContentType)
		page.Write(w) //nolint:errcheck // whoever asked has gone
	})
	web := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	defer context.AfterFunc(ctx, func() { web.Close() })() //nolint:errcheck // Serve returns it
	return ignore(web.Serve(l))
}

package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pintle/pintle/internal/node"
)

// serveMetrics serves the nodes' GPUs to Prometheus at /metrics, until ctx ends. If the address is taken, for example by a dcgm-exporter,
// it only logs that, so that the node can run tasks.
func serveMetrics(ctx context.Context, address string, nodes []*node.Agent, log *slog.Logger) error {
	if address == "" {
		return nil
	}
	registry := prometheus.NewRegistry()
	for _, n := range nodes {
		registry.MustRegister(n)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		log.Warn("the GPUs' metrics are not served; choose another address with --metrics, or with --metrics '' none", "error", err)
		return nil
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	web := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	defer context.AfterFunc(ctx, func() { web.Close() })() //nolint:errcheck // Serve returns it
	return ignore(web.Serve(l))
}

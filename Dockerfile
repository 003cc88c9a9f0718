# The image of control plane and agent: docker build -t pintle .
# It needs the two base images below; make image makes the same without any. docs/operations.md says how to run it.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build && mkdir /data

# With libc and its loader, which NVIDIA's management library needs, and certificate authorities; without a shell.
FROM gcr.io/distroless/base-debian12:nonroot
COPY --from=build /src/bin/pintle /src/bin/pintle-shim /usr/bin/
COPY --from=build /src/LICENSE /usr/share/doc/pintle/copyright
COPY --from=build --chown=65532:65532 --chmod=700 /data /var/lib/pintle
ENV HOME=/var/lib/pintle
WORKDIR /var/lib/pintle
USER 65532:65532
VOLUME /var/lib/pintle
EXPOSE 4566
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --retries=3 CMD ["/usr/bin/pintle", "health"]
ENTRYPOINT ["/usr/bin/pintle"]
CMD ["serve", "--listen", "0.0.0.0:4566", "--data", "/var/lib/pintle"]

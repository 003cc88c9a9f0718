# Names by which services find each other, for TestTerraform.
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

data "aws_vpc" "default" { default = true }

resource "aws_service_discovery_private_dns_namespace" "corp" {
  name        = "corp.local"
  description = "names"
  vpc         = data.aws_vpc.default.id
  tags        = { project = "models" }
}

resource "aws_service_discovery_http_namespace" "plain" {
  name        = "plain"
  description = "no names"
}

resource "aws_service_discovery_service" "web" {
  name        = "web"
  description = "pages"
  dns_config {
    namespace_id   = aws_service_discovery_private_dns_namespace.corp.id
    routing_policy = "MULTIVALUE"
    dns_records {
      ttl  = 10
      type = "SRV"
    }
  }
  health_check_custom_config {
    failure_threshold = 1
  }
  tags = { project = "models" }
}

resource "aws_service_discovery_service" "api" {
  name         = "api"
  namespace_id = aws_service_discovery_http_namespace.plain.id
}

resource "aws_service_discovery_instance" "one" {
  instance_id = "one"
  service_id  = aws_service_discovery_service.api.id
  attributes = {
    AWS_INSTANCE_IPV4 = "10.0.0.1"
    color             = "red"
  }
}

data "aws_service_discovery_dns_namespace" "corp" {
  name       = "corp.local"
  type       = "DNS_PRIVATE"
  depends_on = [aws_service_discovery_private_dns_namespace.corp]
}

resource "aws_ecs_task_definition" "web" {
  family = "web"
  container_definitions = jsonencode([{
    name         = "main"
    image        = "busybox"
    command      = ["sleep", "3600"]
    memory       = 64
    essential    = true
    portMappings = [{ containerPort = 80 }]
  }])
}

resource "aws_ecs_service" "web" {
  name            = "web"
  task_definition = aws_ecs_task_definition.web.arn
  desired_count   = 1
  service_registries {
    registry_arn   = aws_service_discovery_service.web.arn
    container_name = "main"
    container_port = 80
  }
}

# Services of Service Connect, in the namespace that is their cluster's default one, and in one of their own.
resource "aws_ecs_cluster" "mesh" {
  name = "mesh"
  service_connect_defaults {
    namespace = aws_service_discovery_http_namespace.plain.arn
  }
}

resource "aws_ecs_task_definition" "named" {
  family = "named"
  container_definitions = jsonencode([{
    name         = "main"
    image        = "busybox"
    memory       = 64
    essential    = true
    portMappings = [{ name = "http", containerPort = 80, appProtocol = "http" }]
  }])
}

resource "aws_cloudwatch_log_group" "mesh" {
  name = "/mesh"
}

resource "aws_ecs_service" "server" {
  name            = "server"
  cluster         = aws_ecs_cluster.mesh.arn
  task_definition = aws_ecs_task_definition.named.arn
  desired_count   = 0
  service_connect_configuration {
    enabled = true
    log_configuration {
      log_driver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.mesh.name
        awslogs-region        = "us-east-1"
        awslogs-stream-prefix = "proxy"
      }
    }
    service {
      port_name      = "http"
      discovery_name = "pages"
      client_alias {
        dns_name = "pages"
        port     = 80
      }
      timeout {
        idle_timeout_seconds        = 60
        per_request_timeout_seconds = 5
      }
    }
  }
}

resource "aws_ecs_service" "client" {
  name            = "client"
  cluster         = aws_ecs_cluster.mesh.arn
  task_definition = aws_ecs_task_definition.named.arn
  desired_count   = 0
  service_connect_configuration {
    enabled   = true
    namespace = aws_service_discovery_http_namespace.plain.arn
  }
  depends_on = [aws_ecs_service.server]
}

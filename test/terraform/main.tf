# For TestTerraform: everything that Pintle has a resource of Terraform's AWS provider for, once. Here is a queue-driven GPU service, and a
# folder has what belongs to a network, a load balancer, names, topics. They are applied in one go, since the provider waits much.
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

# AWS_ENDPOINT_URL in the environment makes this Pintle's; without it, it is AWS's.
provider "aws" {
  region            = "us-east-1"
  s3_use_path_style = true
  default_tags {
    tags = { project = "render" }
  }
}

module "network" { source = "./network" }

module "balancer" {
  source       = "./balancer"
  certificates = var.certificates
}

module "discovery" { source = "./discovery" }

module "topics" { source = "./topics" }

variable "certificates" {
  description = "Directory with certificate.pem and key.pem."
}

data "aws_caller_identity" "me" {}
data "aws_region" "here" {}
data "aws_availability_zones" "here" { state = "available" }

# A repository for the workers' image.
resource "aws_ecr_repository" "render" {
  name                 = "render/worker"
  image_tag_mutability = "IMMUTABLE"
  force_delete         = true
  image_scanning_configuration { scan_on_push = true }
}

resource "aws_ecr_repository_policy" "render" {
  repository = aws_ecr_repository.render.name
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "pull"
      Effect    = "Allow"
      Principal = { AWS = "arn:aws:iam::${data.aws_caller_identity.me.account_id}:root" }
      Action    = ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    }]
  })
}

resource "aws_ecr_lifecycle_policy" "render" {
  repository = aws_ecr_repository.render.name
  policy = jsonencode({
    rules = [{
      rulePriority = 1
      description  = "Keep ten untagged images"
      selection    = { tagStatus = "untagged", countType = "imageCountMoreThan", countNumber = 10 }
      action       = { type = "expire" }
    }]
  })
}

data "aws_ecr_authorization_token" "here" {}

# Images of other registries by way of this one's: one that anybody may pull from, and one that wants a login.
resource "aws_ecr_pull_through_cache_rule" "public" {
  ecr_repository_prefix = "public"
  upstream_registry_url = "public.ecr.aws"
}

resource "aws_secretsmanager_secret" "hub" {
  name                    = "ecr-pullthroughcache/hub"
  recovery_window_in_days = 0
}

resource "aws_secretsmanager_secret_version" "hub" {
  secret_id     = aws_secretsmanager_secret.hub.id
  secret_string = jsonencode({ username = "someone", accessToken = "something" })
}

resource "aws_ecr_pull_through_cache_rule" "hub" {
  ecr_repository_prefix = "hub"
  upstream_registry_url = "registry-1.docker.io"
  credential_arn        = aws_secretsmanager_secret_version.hub.arn # the secret's, once there is something in it
}

# A queue with its dead letters, and the bucket that writes to it.
resource "aws_sqs_queue" "dead" {
  name                      = "render-dead"
  message_retention_seconds = 1209600
}

resource "aws_sqs_queue" "work" {
  name                       = "render"
  visibility_timeout_seconds = 120
  redrive_policy             = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn, maxReceiveCount = 3 })
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "s3.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = "*"
    }]
  })
}

resource "aws_sqs_queue" "ordered" {
  name                        = "render.fifo"
  fifo_queue                  = true
  content_based_deduplication = true
}

resource "aws_s3_bucket" "frames" {
  bucket        = "render-frames"
  force_destroy = true
}

resource "aws_s3_bucket_versioning" "frames" {
  bucket = aws_s3_bucket.frames.id
  versioning_configuration { status = "Enabled" }
}

resource "aws_s3_bucket_notification" "frames" {
  bucket = aws_s3_bucket.frames.id
  queue {
    queue_arn     = aws_sqs_queue.work.arn
    events        = ["s3:ObjectCreated:*"]
    filter_prefix = "in/"
  }
}

resource "aws_s3_object" "scene" {
  bucket  = aws_s3_bucket.frames.id
  key     = "in/scene.txt"
  content = "a cube"
}

# Machines: a template, a group of none to two, and the capacity provider that sets their number.
resource "aws_launch_template" "gpu" {
  name          = "render-gpu"
  image_id      = "ami-0123456789abcdef0"
  instance_type = "g4dn.xlarge"
  user_data     = base64encode("#!/bin/bash\necho ECS_CLUSTER=render >> /etc/ecs/ecs.config\n")
  tag_specifications {
    resource_type = "instance"
    tags          = { Name = "render" }
  }
}

resource "aws_autoscaling_group" "gpu" {
  name                  = "render-gpu"
  min_size              = 0
  max_size              = 2
  availability_zones    = [data.aws_availability_zones.here.names[0]]
  protect_from_scale_in = true
  launch_template {
    id      = aws_launch_template.gpu.id
    version = aws_launch_template.gpu.latest_version
  }
  tag {
    key                 = "AmazonECSManaged"
    value               = "true"
    propagate_at_launch = true
  }
  warm_pool {
    pool_state                  = "Stopped"
    min_size                    = 0
    max_group_prepared_capacity = 1
    instance_reuse_policy { reuse_on_scale_in = true }
  }
  lifecycle { ignore_changes = [desired_capacity] }
}

resource "aws_ecs_capacity_provider" "gpu" {
  name = "render-gpu"
  auto_scaling_group_provider {
    auto_scaling_group_arn         = aws_autoscaling_group.gpu.arn
    managed_termination_protection = "ENABLED"
    managed_scaling {
      status                    = "ENABLED"
      target_capacity           = 100
      minimum_scaling_step_size = 1
      maximum_scaling_step_size = 2
    }
  }
}

resource "aws_ecs_cluster" "render" {
  name = "render"
  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_ecs_cluster_capacity_providers" "render" {
  cluster_name       = aws_ecs_cluster.render.name
  capacity_providers = [aws_ecs_capacity_provider.gpu.name]
  default_capacity_provider_strategy {
    capacity_provider = aws_ecs_capacity_provider.gpu.name
    weight            = 1
  }
}

# What runs on them, and how many of it.
resource "aws_cloudwatch_log_group" "render" {
  name              = "/ecs/render"
  retention_in_days = 7
}

resource "aws_ecs_task_definition" "render" {
  family = "render"
  container_definitions = jsonencode([{
    name                 = "main"
    image                = "busybox"
    command              = ["sleep", "3600"]
    memory               = 64
    essential            = true
    resourceRequirements = [{ type = "GPU", value = "1" }]
    environment          = [{ name = "QUEUE", value = aws_sqs_queue.work.id }]
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.render.name
        awslogs-region        = data.aws_region.here.name
        awslogs-stream-prefix = "render"
      }
    }
  }])
}

resource "aws_ecs_service" "render" {
  name            = "render"
  cluster         = aws_ecs_cluster.render.id
  task_definition = aws_ecs_task_definition.render.arn
  desired_count   = 1
  capacity_provider_strategy {
    capacity_provider = aws_ecs_capacity_provider.gpu.name
    weight            = 1
  }
  deployment_circuit_breaker {
    enable   = true
    rollback = true
  }
  ordered_placement_strategy {
    type  = "binpack"
    field = "memory"
  }
  enable_ecs_managed_tags = true
  propagate_tags          = "SERVICE"
  wait_for_steady_state   = true
  lifecycle { ignore_changes = [desired_count] }
  depends_on = [aws_ecs_cluster_capacity_providers.render]
}

resource "aws_appautoscaling_target" "render" {
  service_namespace  = "ecs"
  resource_id        = "service/${aws_ecs_cluster.render.name}/${aws_ecs_service.render.name}"
  scalable_dimension = "ecs:service:DesiredCount"
  min_capacity       = 0
  max_capacity       = 2
}

resource "aws_appautoscaling_policy" "up" {
  name               = "up"
  policy_type        = "StepScaling"
  service_namespace  = aws_appautoscaling_target.render.service_namespace
  resource_id        = aws_appautoscaling_target.render.resource_id
  scalable_dimension = aws_appautoscaling_target.render.scalable_dimension
  step_scaling_policy_configuration {
    adjustment_type         = "ExactCapacity"
    cooldown                = 60
    metric_aggregation_type = "Maximum"
    step_adjustment {
      metric_interval_lower_bound = 0
      metric_interval_upper_bound = 10
      scaling_adjustment          = 1
    }
    step_adjustment {
      metric_interval_lower_bound = 10
      scaling_adjustment          = 2
    }
  }
}

resource "aws_appautoscaling_policy" "track" {
  name               = "track"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.render.service_namespace
  resource_id        = aws_appautoscaling_target.render.resource_id
  scalable_dimension = aws_appautoscaling_target.render.scalable_dimension
  target_tracking_scaling_policy_configuration {
    target_value       = 75
    scale_in_cooldown  = 60
    scale_out_cooldown = 30
    predefined_metric_specification {
      predefined_metric_type = "ECSServiceAverageCPUUtilization"
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "backlog" {
  alarm_name          = "render-backlog"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.work.name }
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 1
  comparison_operator = "GreaterThanOrEqualToThreshold"
  alarm_actions       = [aws_appautoscaling_policy.up.arn]
}

resource "aws_cloudwatch_composite_alarm" "any" {
  alarm_name = "render-any"
  alarm_rule = "ALARM(${aws_cloudwatch_metric_alarm.backlog.alarm_name})"
}

resource "aws_cloudwatch_dashboard" "render" {
  dashboard_name = "render"
  dashboard_body = jsonencode({ widgets = [{ type = "text", x = 0, y = 0, width = 6, height = 2, properties = { markdown = "# render" } }] })
}

# What containers must not have in their definitions.
resource "aws_secretsmanager_secret" "database" {
  name                    = "render/database"
  description             = "How to reach the database"
  recovery_window_in_days = 0
}

resource "aws_secretsmanager_secret_version" "database" {
  secret_id     = aws_secretsmanager_secret.database.id
  secret_string = jsonencode({ username = "render", password = "a cube" })
}

resource "aws_secretsmanager_secret_policy" "database" {
  secret_arn = aws_secretsmanager_secret.database.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { AWS = "arn:aws:iam::${data.aws_caller_identity.me.account_id}:root" }
      Action    = "secretsmanager:GetSecretValue"
      Resource  = "*"
    }]
  })
}

data "aws_secretsmanager_random_password" "token" {
  password_length     = 24
  exclude_punctuation = true
}

resource "aws_ssm_parameter" "token" {
  name  = "/render/token"
  type  = "SecureString"
  value = "a sphere"
}

resource "aws_ssm_parameter" "sizes" {
  name        = "/render/sizes"
  type        = "StringList"
  value       = "640,1280"
  description = "Widths of frames"
}

# Who may do what: roles with their policies, an instance profile, and a user with a key.
data "aws_iam_policy_document" "ecs_tasks" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["ecs-tasks.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "frames" {
  statement {
    sid       = "Frames"
    actions   = ["s3:GetObject", "s3:PutObject"]
    resources = ["${aws_s3_bucket.frames.arn}/*"]
  }
}

resource "aws_iam_policy" "frames" {
  name        = "render-frames"
  path        = "/render/"
  description = "reads and writes frames"
  policy      = data.aws_iam_policy_document.frames.json
}

resource "aws_iam_role" "task" {
  name                 = "render-task"
  assume_role_policy   = data.aws_iam_policy_document.ecs_tasks.json
  max_session_duration = 7200
  permissions_boundary = "arn:aws:iam::aws:policy/PowerUserAccess"
  tags                 = { team = "render" }
}

resource "aws_iam_role_policy" "queue" {
  name = "queue"
  role = aws_iam_role.task.id
  policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Action = "sqs:*", Resource = aws_sqs_queue.work.arn }]
  })
}

resource "aws_iam_role_policy_attachment" "frames" {
  role       = aws_iam_role.task.name
  policy_arn = aws_iam_policy.frames.arn
}

resource "aws_iam_role" "instance" {
  name = "render-instance"
  assume_role_policy = jsonencode({
    Statement = [{ Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ec2.amazonaws.com" } }]
  })
}

resource "aws_iam_role_policy_attachment" "instance" {
  role       = aws_iam_role.instance.name
  policy_arn = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"
}

resource "aws_iam_instance_profile" "instance" {
  name = "render-instance"
  role = aws_iam_role.instance.name
}

resource "aws_iam_group" "artists" { name = "artists" }

resource "aws_iam_user" "ann" {
  name = "ann"
  path = "/artists/"
}

resource "aws_iam_user_group_membership" "ann" {
  user   = aws_iam_user.ann.name
  groups = [aws_iam_group.artists.name]
}

resource "aws_iam_access_key" "ann" { user = aws_iam_user.ann.name }

output "account" { value = data.aws_caller_identity.me.account_id }

resource "aws_cloudformation_stack" "audit" {
  name         = "audit"
  capabilities = ["CAPABILITY_NAMED_IAM"]
  parameters   = { Days = "7" }
  on_failure   = "DELETE"
  template_body = jsonencode({
    Parameters = { Days = { Type = "Number", Default = 1 } }
    Resources = {
      Log = { Type = "AWS::Logs::LogGroup", Properties = { LogGroupName = "/audit", RetentionInDays = { Ref = "Days" } } }
      Role = {
        Type = "AWS::IAM::Role"
        Properties = {
          RoleName = "auditor"
          AssumeRolePolicyDocument = {
            Version   = "2012-10-17"
            Statement = [{ Effect = "Allow", Principal = { Service = "ecs-tasks.amazonaws.com" }, Action = "sts:AssumeRole" }]
          }
        }
      }
    }
    Outputs = { Role = { Value = { "Fn::GetAtt" = ["Role", "Arn"] }, Export = { Name = "auditor" } } }
  })
}

data "aws_cloudformation_export" "auditor" {
  name       = "auditor"
  depends_on = [aws_cloudformation_stack.audit]
}

output "auditor" { value = [aws_cloudformation_stack.audit.outputs["Role"], data.aws_cloudformation_export.auditor.value] }

# With force_destroy Terraform empties the user of every kind of credential before it deletes it.
resource "aws_iam_user" "painter" {
  name          = "painter"
  force_destroy = true
}

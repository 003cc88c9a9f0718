# The fleet of fleet.sh, with its names: images in S3 tell a queue, its length starts and ends GPU instances, and a worker on each of them works
# the queue off. The roles are made here, too.
terraform {
  required_providers {
    aws = { source = "hashicorp/aws", version = ">= 5.0" }
  }
}

# AWS_ENDPOINT_URL in the environment makes this Pintle's; without it, it is AWS's.
provider "aws" {
  s3_use_path_style = true
}

variable "bucket" {
  description = "The bucket of the images and the results. On AWS its name is unique in the world."
  default     = "ml-gpu-example"
}

variable "image" {
  description = "The workers' image, with what ../Dockerfile puts into it."
  default     = "ml-gpu-example"
}

variable "app" {
  description = "The folder of lines.py and model.py in the image; in the runtime process, on the machine."
  default     = "/app"
}

variable "instance_type" {
  default = "g4dn.xlarge"
}

variable "period" {
  description = "Seconds of the alarm's period. With pintle up --reaction fast, one of 10 is looked at as messages come."
  default     = 60
}

variable "warmup" {
  description = "Seconds from an instance's start in which none is taken away."
  default     = 300
}

data "aws_region" "here" {}

data "aws_partition" "here" {}

data "aws_vpc" "default" {
  default = true
}

data "aws_subnets" "default" {
  filter {
    name   = "vpc-id"
    values = [data.aws_vpc.default.id]
  }
}

data "aws_ssm_parameter" "machine_image" {
  name = "/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id"
}

resource "aws_sqs_queue" "dead" {
  name                      = "example-gpu-queue-dead"
  message_retention_seconds = 1209600
}

resource "aws_sqs_queue" "images" {
  name           = "example-gpu-queue"
  redrive_policy = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn, maxReceiveCount = 10 })
}

resource "aws_s3_bucket" "images" {
  bucket        = var.bucket
  force_destroy = true
}

resource "aws_sqs_queue_policy" "bucket" {
  queue_url = aws_sqs_queue.images.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "s3.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.images.arn
      Condition = { ArnLike = { "aws:SourceArn" = aws_s3_bucket.images.arn } }
    }]
  })
}

resource "aws_s3_bucket_notification" "images" {
  bucket = aws_s3_bucket.images.id
  queue {
    queue_arn     = aws_sqs_queue.images.arn
    events        = ["s3:ObjectCreated:*"]
    filter_suffix = ".jpg"
  }
  depends_on = [aws_sqs_queue_policy.bucket]
}

resource "aws_ecs_cluster" "fleet" {
  name = "gpu-example-cluster"
  setting {
    name  = "containerInsights"
    value = "enabled"
  }
}

resource "aws_cloudwatch_log_group" "worker" {
  name              = "/ecs/ml-gpu-worker"
  retention_in_days = 7
}

resource "aws_iam_role" "worker" {
  name_prefix = "ml-gpu-worker-"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "ecs-tasks.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

# What pintle worker --help says that it needs.
resource "aws_iam_role_policy" "worker" {
  name = "worker"
  role = aws_iam_role.worker.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Effect   = "Allow"
        Action   = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"]
        Resource = aws_sqs_queue.images.arn
      },
      { Effect = "Allow", Action = ["sqs:SendMessage", "sqs:GetQueueUrl"], Resource = aws_sqs_queue.dead.arn },
      { Effect = "Allow", Action = "s3:ListBucket", Resource = aws_s3_bucket.images.arn },
      { Effect = "Allow", Action = ["s3:GetObject", "s3:PutObject"], Resource = "${aws_s3_bucket.images.arn}/*" },
      { Effect = "Allow", Action = ["ecs:UpdateTaskProtection", "ecs:DescribeServices", "cloudwatch:PutMetricData"], Resource = "*" },
    ]
  })
}

resource "aws_ecs_task_definition" "worker" {
  family        = "ml-gpu-worker"
  task_role_arn = aws_iam_role.worker.arn
  container_definitions = jsonencode([{
    name  = "gpu-worker-container"
    image = var.image
    command = [
      "pintle", "worker", "--queue-url", aws_sqs_queue.images.url, "--result-bucket", aws_s3_bucket.images.id, "--result-prefix", "results/",
      "--mode", "lines", "--batch", "4", "--metrics-interval", "10s", "--", "python3", "${var.app}/lines.py",
    ]
    cpu                  = 1024
    memory               = 2048
    stopTimeout          = 30
    resourceRequirements = [{ type = "GPU", value = "1" }]
    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.worker.name
        awslogs-region        = data.aws_region.here.name
        awslogs-stream-prefix = "ecs"
      }
    }
  }])
}

# A worker on each instance that there will be.
resource "aws_ecs_service" "worker" {
  name                = "gpu-worker"
  cluster             = aws_ecs_cluster.fleet.id
  task_definition     = aws_ecs_task_definition.worker.arn
  launch_type         = "EC2"
  scheduling_strategy = "DAEMON"
  depends_on          = [aws_iam_role_policy.worker]
}

resource "aws_iam_role" "instance" {
  name_prefix = "ml-gpu-instance-"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = [{ Effect = "Allow", Principal = { Service = "ec2.amazonaws.com" }, Action = "sts:AssumeRole" }]
  })
}

resource "aws_iam_role_policy_attachment" "instance" {
  role       = aws_iam_role.instance.name
  policy_arn = "arn:${data.aws_partition.here.partition}:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"
}

resource "aws_iam_instance_profile" "instance" {
  name_prefix = "ml-gpu-instance-"
  role        = aws_iam_role.instance.name
}

resource "aws_launch_template" "instance" {
  name          = "ml-gpu-example"
  image_id      = data.aws_ssm_parameter.machine_image.insecure_value
  instance_type = var.instance_type
  iam_instance_profile {
    arn = aws_iam_instance_profile.instance.arn
  }
  user_data = base64encode(<<-EOT
    #!/bin/bash
    echo ECS_CLUSTER=${aws_ecs_cluster.fleet.name} >> /etc/ecs/ecs.config
  EOT
  )
}

# No instance for no message, one for some, two for more than a hundred.
resource "aws_autoscaling_group" "fleet" {
  name                    = "ml-gpu-example"
  min_size                = 0
  max_size                = 2
  vpc_zone_identifier     = data.aws_subnets.default.ids
  default_instance_warmup = var.warmup
  launch_template {
    id      = aws_launch_template.instance.id
    version = aws_launch_template.instance.latest_version
  }
  lifecycle {
    ignore_changes = [desired_capacity]
  }
}

resource "aws_autoscaling_policy" "messages" {
  name                   = "messages"
  autoscaling_group_name = aws_autoscaling_group.fleet.name
  policy_type            = "StepScaling"
  adjustment_type        = "ExactCapacity"
  step_adjustment {
    scaling_adjustment          = 0
    metric_interval_upper_bound = 1
  }
  step_adjustment {
    scaling_adjustment          = 1
    metric_interval_lower_bound = 1
    metric_interval_upper_bound = 101
  }
  step_adjustment {
    scaling_adjustment          = 2
    metric_interval_lower_bound = 101
  }
}

# In alarm while there are no messages; the policy is told of either state.
resource "aws_cloudwatch_metric_alarm" "empty" {
  alarm_name          = "example-gpu-queue-empty"
  namespace           = "AWS/SQS"
  metric_name         = "ApproximateNumberOfMessagesVisible"
  dimensions          = { QueueName = aws_sqs_queue.images.name }
  statistic           = "Maximum"
  period              = var.period
  evaluation_periods  = 1
  comparison_operator = "LessThanOrEqualToThreshold"
  threshold           = 0
  alarm_actions       = [aws_autoscaling_policy.messages.arn]
  ok_actions          = [aws_autoscaling_policy.messages.arn]
}

output "queue" {
  value = aws_sqs_queue.images.url
}

output "bucket" {
  value = aws_s3_bucket.images.id
}

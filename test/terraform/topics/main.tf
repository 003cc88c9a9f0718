# Topics, who is subscribed to them, and who tells them.

terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

resource "aws_sqs_queue" "readers" { name = "readers" }

resource "aws_sqs_queue" "dead" { name = "readers-dead" }

resource "aws_sqs_queue" "ordered" {
  name       = "readers.fifo"
  fifo_queue = true
}

resource "aws_sqs_queue_policy" "readers" {
  queue_url = aws_sqs_queue.readers.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "sns.amazonaws.com" }
      Action    = "sqs:SendMessage"
      Resource  = aws_sqs_queue.readers.arn
      Condition = { ArnEquals = { "aws:SourceArn" = aws_sns_topic.news.arn } }
    }]
  })
}

resource "aws_sns_topic" "news" {
  name              = "news"
  display_name      = "News"
  signature_version = 2
  delivery_policy = jsonencode({
    http = {
      defaultHealthyRetryPolicy = {
        minDelayTarget     = 1
        maxDelayTarget     = 20
        numRetries         = 10
        numMaxDelayRetries = 2
        numNoDelayRetries  = 1
        numMinDelayRetries = 2
        backoffFunction    = "exponential"
      }
      disableSubscriptionOverrides = false
      defaultRequestPolicy         = { headerContentType = "application/json" }
    }
  })
  tags = { team = "ml" }
}

resource "aws_sns_topic" "ordered" {
  name                        = "news.fifo"
  fifo_topic                  = true
  content_based_deduplication = true
}

resource "aws_sns_topic" "plain" { name_prefix = "plain-" }

resource "aws_sns_topic_policy" "news" {
  arn = aws_sns_topic.news.arn
  policy = jsonencode({
    Version = "2012-10-17"
    Id      = "news"
    Statement = [{
      Sid       = "services"
      Effect    = "Allow"
      Principal = { Service = ["cloudwatch.amazonaws.com", "s3.amazonaws.com"] }
      Action    = "sns:Publish"
      Resource  = aws_sns_topic.news.arn
    }]
  })
}

resource "aws_sns_topic_subscription" "readers" {
  topic_arn            = aws_sns_topic.news.arn
  protocol             = "sqs"
  endpoint             = aws_sqs_queue.readers.arn
  raw_message_delivery = true
  filter_policy_scope  = "MessageBody"
  filter_policy        = jsonencode({ kind = [{ prefix = "a" }], size = { total = [{ numeric = [">", 5] }] } })
  redrive_policy       = jsonencode({ deadLetterTargetArn = aws_sqs_queue.dead.arn })
}

resource "aws_sns_topic_subscription" "ordered" {
  topic_arn = aws_sns_topic.ordered.arn
  protocol  = "sqs"
  endpoint  = aws_sqs_queue.ordered.arn
}

resource "aws_s3_bucket" "papers" { bucket = "papers" }

resource "aws_s3_bucket_notification" "papers" {
  bucket = aws_s3_bucket.papers.id
  topic {
    topic_arn     = aws_sns_topic.news.arn
    events        = ["s3:ObjectCreated:*"]
    filter_prefix = "in/"
  }
  depends_on = [aws_sns_topic_policy.news]
}

resource "aws_cloudwatch_metric_alarm" "load" {
  alarm_name          = "load"
  namespace           = "Seed"
  metric_name         = "load"
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 1
  threshold           = 75
  comparison_operator = "GreaterThanThreshold"
  alarm_actions       = [aws_sns_topic.news.arn]
}

resource "aws_launch_template" "worker" {
  name          = "reader"
  image_id      = "ami-1"
  instance_type = "c5.large"
}

resource "aws_autoscaling_group" "workers" {
  name               = "readers"
  min_size           = 0
  max_size           = 1
  availability_zones = ["us-east-1a"]
  launch_template { id = aws_launch_template.worker.id }
}

resource "aws_autoscaling_notification" "workers" {
  group_names   = [aws_autoscaling_group.workers.name]
  notifications = ["autoscaling:EC2_INSTANCE_LAUNCH", "autoscaling:EC2_INSTANCE_TERMINATE"]
  topic_arn     = aws_sns_topic.plain.arn
}

resource "aws_cloudformation_stack" "told" {
  name              = "told"
  notification_arns = [aws_sns_topic.plain.arn]
  template_body     = jsonencode({ Resources = { Topic = { Type = "AWS::SNS::Topic", Properties = { DisplayName = "inner" } } } })
}

data "aws_sns_topic" "news" {
  name       = "news"
  depends_on = [aws_sns_topic.news]
}

output "news" { value = data.aws_sns_topic.news.arn }

# Rules, and schedules.

resource "aws_cloudwatch_event_bus" "orders" {
  name        = "orders"
  description = "all orders"
  tags        = { team = "ml" }
}

resource "aws_cloudwatch_event_rule" "large" {
  name           = "large"
  event_bus_name = aws_cloudwatch_event_bus.orders.name
  event_pattern  = jsonencode({ source = ["shop"], detail = { n = [{ numeric = [">", 5] }] } })
  tags           = { team = "ml" }
}

resource "aws_cloudwatch_event_target" "large" {
  rule           = aws_cloudwatch_event_rule.large.name
  event_bus_name = aws_cloudwatch_event_bus.orders.name
  target_id      = "readers"
  arn            = aws_sqs_queue.readers.arn
  input_transformer {
    input_paths    = { n = "$.detail.n" }
    input_template = "{\"number\": <n>}"
  }
  dead_letter_config { arn = aws_sqs_queue.dead.arn }
}

resource "aws_cloudwatch_event_rule" "nightly" {
  name                = "nightly"
  schedule_expression = "cron(0 3 * * ? *)"
}

resource "aws_iam_role" "runner" {
  name = "runner"
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = ["events.amazonaws.com", "scheduler.amazonaws.com"] }
    }]
  })
}

resource "aws_ecs_cluster" "night" { name = "night" }

resource "aws_ecs_task_definition" "report" {
  family                = "report"
  container_definitions = jsonencode([{ name = "main", image = "busybox", memory = 64 }])
}

resource "aws_cloudwatch_event_target" "nightly" {
  rule     = aws_cloudwatch_event_rule.nightly.name
  arn      = aws_ecs_cluster.night.arn
  role_arn = aws_iam_role.runner.arn
  input    = jsonencode({ containerOverrides = [{ name = "main", command = ["report"] }] })
  ecs_target {
    task_definition_arn = aws_ecs_task_definition.report.arn
    task_count          = 2
  }
}

resource "aws_scheduler_schedule_group" "night" {
  name = "night"
  tags = { team = "ml" }
}

resource "aws_scheduler_schedule" "report" {
  name                         = "report"
  group_name                   = aws_scheduler_schedule_group.night.name
  schedule_expression          = "cron(0 4 * * ? *)"
  schedule_expression_timezone = "Europe/Berlin"
  flexible_time_window {
    mode                      = "FLEXIBLE"
    maximum_window_in_minutes = 10
  }
  target {
    arn      = aws_sqs_queue.readers.arn
    role_arn = aws_iam_role.runner.arn
    input    = jsonencode({ report = true })
    retry_policy { maximum_retry_attempts = 3 }
  }
}

# Topics, who is subscribed to them, and who tells them.

terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

provider "aws" {
  s3_use_path_style = true
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

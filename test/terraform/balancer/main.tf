# A load balancer with what belongs to it, for TestTerraform.
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

data "aws_vpc" "default" { default = true }

data "aws_subnets" "default" {
  filter {
    name   = "vpc-id"
    values = [data.aws_vpc.default.id]
  }
}

resource "aws_lb" "web" {
  name               = "web"
  load_balancer_type = "application"
  subnets            = slice(sort(data.aws_subnets.default.ids), 0, 2)
  idle_timeout       = 30
  tags               = { project = "models" }
}

resource "aws_lb_target_group" "models" {
  name                 = "models"
  port                 = 80
  protocol             = "HTTP"
  target_type          = "ip"
  vpc_id               = data.aws_vpc.default.id
  deregistration_delay = 5
  health_check {
    path     = "/health"
    interval = 10
    timeout  = 5
    matcher  = "200-299"
  }
  stickiness {
    type            = "lb_cookie"
    cookie_duration = 60
  }
}

resource "aws_lb_target_group_attachment" "model" {
  target_group_arn = aws_lb_target_group.models.arn
  target_id        = "127.0.0.1"
  port             = 9
}

resource "aws_lb_listener" "web" {
  load_balancer_arn = aws_lb.web.arn
  port              = 80
  protocol          = "HTTP"
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.models.arn
  }
}

resource "aws_lb_listener_rule" "fixed" {
  listener_arn = aws_lb_listener.web.arn
  priority     = 10
  action {
    type = "fixed-response"
    fixed_response {
      content_type = "text/plain"
      message_body = "fixed"
      status_code  = "200"
    }
  }
  condition {
    path_pattern { values = ["/fixed"] }
  }
  condition {
    http_header {
      http_header_name = "X-Version"
      values           = ["1", "2"]
    }
  }
}

resource "aws_lb_listener_rule" "old" {
  listener_arn = aws_lb_listener.web.arn
  priority     = 20
  action {
    type = "redirect"
    redirect {
      path        = "/new"
      status_code = "HTTP_301"
    }
  }
  condition {
    host_header { values = ["old.example.com"] }
  }
}

# An Auto Scaling group behind two target groups, each attached in its own way.
resource "aws_lb_target_group" "machines" {
  for_each = toset(["one", "two"])
  name     = each.key
  port     = 80
  protocol = "HTTP"
  vpc_id   = data.aws_vpc.default.id
}

resource "aws_launch_template" "machine" {
  name          = "machine"
  image_id      = "ami-00000000"
  instance_type = "c5.large"
}

resource "aws_autoscaling_group" "machines" {
  name                      = "machines"
  min_size                  = 0
  max_size                  = 1
  availability_zones        = ["us-east-1a"]
  health_check_type         = "ELB"
  health_check_grace_period = 60
  target_group_arns         = [aws_lb_target_group.machines["one"].arn]
  launch_template {
    id      = aws_launch_template.machine.id
    version = "$Latest"
  }
  lifecycle {
    ignore_changes = [target_group_arns]
  }
}

resource "aws_autoscaling_attachment" "two" {
  autoscaling_group_name = aws_autoscaling_group.machines.name
  lb_target_group_arn    = aws_lb_target_group.machines["two"].arn
}

resource "aws_autoscaling_policy" "requests" {
  name                   = "requests"
  autoscaling_group_name = aws_autoscaling_group.machines.name
  policy_type            = "TargetTrackingScaling"
  target_tracking_configuration {
    target_value = 100
    predefined_metric_specification {
      predefined_metric_type = "ALBRequestCountPerTarget"
      resource_label         = "${aws_lb.web.arn_suffix}/${aws_lb_target_group.models.arn_suffix}"
    }
  }
}

# A network load balancer, whose target groups keep every default that the provider sends, or say what they want.
resource "aws_lb" "games" {
  name               = "games"
  load_balancer_type = "network"
  subnets            = slice(sort(data.aws_subnets.default.ids), 0, 2)
}

variable "certificates" {
  description = "Directory with certificate.pem and key.pem."
}

resource "aws_acm_certificate" "games" {
  certificate_body = file("${var.certificates}/certificate.pem")
  private_key      = file("${var.certificates}/key.pem")
}

resource "aws_lb_target_group" "games" {
  for_each    = toset(["TCP", "UDP", "TCP_UDP", "TLS"])
  name        = "games-${lower(replace(each.key, "_", "-"))}"
  port        = 7000
  protocol    = each.key
  target_type = "ip"
  vpc_id      = data.aws_vpc.default.id
  health_check {
    protocol = "TCP"
    port     = 7001
  }
}

resource "aws_lb_target_group" "told" {
  name                   = "told"
  port                   = 7000
  protocol               = "TCP"
  vpc_id                 = data.aws_vpc.default.id
  proxy_protocol_v2      = true
  connection_termination = true
  deregistration_delay   = 20
  health_check {
    protocol            = "HTTP"
    path                = "/health"
    matcher             = "200-299"
    interval            = 10
    timeout             = 5
    healthy_threshold   = 2
    unhealthy_threshold = 2
  }
  stickiness {
    type = "source_ip"
  }
}

resource "aws_lb_listener" "games" {
  for_each          = { TCP = 7000, UDP = 7001, TCP_UDP = 7002 }
  load_balancer_arn = aws_lb.games.arn
  port              = each.value
  protocol          = each.key
  default_action {
    type             = "forward"
    target_group_arn = aws_lb_target_group.games[each.key].arn
  }
}

resource "aws_lb_listener" "secret" {
  for_each          = { TLS = 7443, TCP = 7444 } # what leads to groups of which protocol
  load_balancer_arn = aws_lb.games.arn
  port              = each.value
  protocol          = "TLS"
  certificate_arn   = aws_acm_certificate.games.arn
  ssl_policy        = "ELBSecurityPolicy-TLS13-1-2-2021-06"
  alpn_policy       = each.key == "TLS" ? "HTTP2Preferred" : "None"
  default_action {
    type             = "forward"
    target_group_arn = each.key == "TLS" ? aws_lb_target_group.games["TLS"].arn : aws_lb_target_group.told.arn
  }
}

# One more certificate for whoever asks for its name.
resource "aws_acm_certificate" "more" {
  certificate_body = file("${var.certificates}/certificate.pem")
  private_key      = file("${var.certificates}/key.pem")
}

resource "aws_lb_listener_certificate" "more" {
  listener_arn    = aws_lb_listener.secret["TLS"].arn
  certificate_arn = aws_acm_certificate.more.arn
}

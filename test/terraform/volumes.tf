# What tasks keep their data on: file systems of EFS, and a service whose tasks have volumes of EBS.
data "aws_vpc" "default" { default = true }

data "aws_subnets" "default" {
  filter {
    name   = "vpc-id"
    values = [data.aws_vpc.default.id]
  }
}

resource "aws_security_group" "nfs" {
  name   = "nfs"
  vpc_id = data.aws_vpc.default.id
}

resource "aws_efs_file_system" "models" {
  creation_token   = "models"
  encrypted        = true
  performance_mode = "generalPurpose"
  throughput_mode  = "elastic"
  lifecycle_policy { transition_to_ia = "AFTER_30_DAYS" }
  lifecycle_policy { transition_to_primary_storage_class = "AFTER_1_ACCESS" }
  protection { replication_overwrite = "ENABLED" }
  tags = { Name = "models" }
}

resource "aws_efs_file_system" "plain" {}

resource "aws_efs_file_system" "provisioned" {
  throughput_mode                 = "provisioned"
  provisioned_throughput_in_mibps = 10
}

resource "aws_efs_backup_policy" "models" {
  file_system_id = aws_efs_file_system.models.id
  backup_policy { status = "ENABLED" }
}

resource "aws_efs_access_point" "app" {
  file_system_id = aws_efs_file_system.models.id
  posix_user {
    uid = 1000
    gid = 1000
  }
  root_directory {
    path = "/app"
    creation_info {
      owner_uid   = 1000
      owner_gid   = 1000
      permissions = "0755"
    }
  }
  tags = { Name = "app" }
}

resource "aws_efs_access_point" "whole" {
  file_system_id = aws_efs_file_system.models.id
}

resource "aws_efs_mount_target" "models" {
  for_each        = toset(slice(sort(data.aws_subnets.default.ids), 0, 2))
  file_system_id  = aws_efs_file_system.models.id
  subnet_id       = each.value
  security_groups = [aws_security_group.nfs.id]
}

resource "aws_efs_mount_target" "plain" {
  file_system_id = aws_efs_file_system.plain.id
  subnet_id      = sort(data.aws_subnets.default.ids)[0]
}

data "aws_efs_file_system" "models" {
  creation_token = aws_efs_file_system.models.creation_token
}

data "aws_efs_access_points" "models" {
  file_system_id = aws_efs_file_system.models.id
  depends_on     = [aws_efs_access_point.app, aws_efs_access_point.whole]
}

data "aws_efs_mount_target" "plain" {
  mount_target_id = aws_efs_mount_target.plain.id
}

resource "aws_ecs_cluster" "keeps" {
  name = "keeps"
}

resource "aws_iam_role" "volumes" {
  name = "ecsInfrastructureRole"
  assume_role_policy = jsonencode({
    Version   = "2012-10-17"
    Statement = { Effect = "Allow", Action = "sts:AssumeRole", Principal = { Service = "ecs.amazonaws.com" } }
  })
}

resource "aws_iam_role_policy_attachment" "volumes" {
  role       = aws_iam_role.volumes.name
  policy_arn = "arn:aws:iam::aws:policy/service-role/AmazonECSInfrastructureRolePolicyForVolumes"
}

resource "aws_ecs_task_definition" "keeps" {
  family = "keeps"
  container_definitions = jsonencode([{
    name         = "main", image = "busybox", memory = 64
    portMappings = [{ containerPortRange = "8000-8010", protocol = "tcp" }]
    mountPoints = [
      { sourceVolume = "scratch", containerPath = "/scratch" },
      { sourceVolume = "models", containerPath = "/models" },
    ]
  }])
  volume {
    name                = "scratch"
    configure_at_launch = true
  }
  volume {
    name = "models"
    efs_volume_configuration {
      file_system_id     = aws_efs_file_system.models.id
      transit_encryption = "ENABLED"
      authorization_config { access_point_id = aws_efs_access_point.app.id }
    }
  }
}

resource "aws_ecs_service" "keeps" {
  name            = "keeps"
  cluster         = aws_ecs_cluster.keeps.id
  task_definition = aws_ecs_task_definition.keeps.arn
  desired_count   = 0
  volume_configuration {
    name = "scratch"
    managed_ebs_volume {
      role_arn         = aws_iam_role.volumes.arn
      encrypted        = false # Terraform's default is true
      size_in_gb       = 10
      volume_type      = "gp3"
      throughput       = 200
      iops             = 3000
      file_system_type = "ext4"
      tag_specifications {
        resource_type  = "volume"
        propagate_tags = "SERVICE"
        tags           = { own = "yes" }
      }
    }
  }
}

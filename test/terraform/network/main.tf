# A network for TestTerraform: each of EC2's network resources that Pintle has, once or twice.
terraform {
  required_providers {
    aws = { source = "hashicorp/aws" }
  }
}

# AWS_ENDPOINT_URL in the environment makes this Pintle's; without it, it is AWS's.
data "aws_availability_zones" "here" { state = "available" }

data "aws_vpc" "default" { default = true }

data "aws_subnets" "default" {
  filter {
    name   = "vpc-id"
    values = [data.aws_vpc.default.id]
  }
}

resource "aws_vpc" "main" {
  cidr_block           = "10.0.0.0/16"
  enable_dns_hostnames = true
  tags                 = { Name = "main" }
}

resource "aws_vpc_ipv4_cidr_block_association" "more" {
  vpc_id     = aws_vpc.main.id
  cidr_block = "10.1.0.0/16"
}

resource "aws_subnet" "public" {
  count                   = 2
  vpc_id                  = aws_vpc.main.id
  cidr_block              = cidrsubnet(aws_vpc.main.cidr_block, 8, count.index)
  availability_zone       = data.aws_availability_zones.here.names[count.index]
  map_public_ip_on_launch = true
}

resource "aws_subnet" "private" {
  vpc_id            = aws_vpc.main.id
  cidr_block        = "10.1.0.0/20"
  availability_zone = data.aws_availability_zones.here.names[2]
  depends_on        = [aws_vpc_ipv4_cidr_block_association.more]
}

resource "aws_internet_gateway" "main" {
  vpc_id = aws_vpc.main.id
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.main.id
  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.main.id
  }
}

resource "aws_route_table_association" "public" {
  count          = 2
  subnet_id      = aws_subnet.public[count.index].id
  route_table_id = aws_route_table.public.id
}

resource "aws_eip" "nat" {
  domain     = "vpc"
  depends_on = [aws_internet_gateway.main]
}

resource "aws_nat_gateway" "main" {
  allocation_id = aws_eip.nat.id
  subnet_id     = aws_subnet.public[0].id
  depends_on    = [aws_internet_gateway.main]
}

resource "aws_route_table" "private" {
  vpc_id = aws_vpc.main.id
}

resource "aws_route" "out" {
  route_table_id         = aws_route_table.private.id
  destination_cidr_block = "0.0.0.0/0"
  nat_gateway_id         = aws_nat_gateway.main.id
}

resource "aws_route_table_association" "private" {
  subnet_id      = aws_subnet.private.id
  route_table_id = aws_route_table.private.id
}

# The rules of one group are inside it, those of the other beside it, of both kinds.
resource "aws_security_group" "web" {
  name        = "web"
  description = "web"
  vpc_id      = aws_vpc.main.id
  ingress {
    from_port   = 443
    to_port     = 443
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0", "10.0.0.0/8"]
  }
  egress {
    from_port        = 0
    to_port          = 0
    protocol         = "-1"
    cidr_blocks      = ["0.0.0.0/0"]
    ipv6_cidr_blocks = ["::/0"]
  }
}

resource "aws_security_group" "render" {
  name   = "render"
  vpc_id = aws_vpc.main.id
}

resource "aws_security_group_rule" "among" {
  type              = "ingress"
  security_group_id = aws_security_group.render.id
  from_port         = 0
  to_port           = 65535
  protocol          = "tcp"
  self              = true
}

resource "aws_vpc_security_group_ingress_rule" "web" {
  security_group_id            = aws_security_group.render.id
  referenced_security_group_id = aws_security_group.web.id
  ip_protocol                  = "tcp"
  from_port                    = 8080
  to_port                      = 8081
  description                  = "from the web"
}

resource "aws_vpc_security_group_egress_rule" "all" {
  security_group_id = aws_security_group.render.id
  cidr_ipv4         = "0.0.0.0/0"
  ip_protocol       = "-1"
}

resource "aws_network_acl" "private" {
  vpc_id     = aws_vpc.main.id
  subnet_ids = [aws_subnet.private.id]
  ingress {
    rule_no    = 100
    protocol   = "tcp"
    action     = "allow"
    cidr_block = "10.0.0.0/8"
    from_port  = 0
    to_port    = 65535
  }
  egress {
    rule_no    = 100
    protocol   = "-1"
    action     = "allow"
    cidr_block = "0.0.0.0/0"
    from_port  = 0
    to_port    = 0
  }
}

resource "aws_network_interface" "spare" {
  subnet_id       = aws_subnet.private.id
  security_groups = [aws_security_group.render.id]
}

resource "aws_vpc_endpoint" "s3" {
  vpc_id          = aws_vpc.main.id
  service_name    = "com.amazonaws.us-east-1.s3"
  route_table_ids = [aws_route_table.private.id]
}

resource "aws_vpc_endpoint" "ecs" {
  vpc_id             = aws_vpc.main.id
  service_name       = "com.amazonaws.us-east-1.ecs"
  vpc_endpoint_type  = "Interface"
  subnet_ids         = [aws_subnet.private.id]
  security_group_ids = [aws_security_group.render.id]
}

resource "aws_vpc_dhcp_options" "main" {
  domain_name         = "render.internal"
  domain_name_servers = ["AmazonProvidedDNS"]
}

resource "aws_vpc_dhcp_options_association" "main" {
  vpc_id          = aws_vpc.main.id
  dhcp_options_id = aws_vpc_dhcp_options.main.id
}

resource "aws_key_pair" "me" {
  key_name   = "me"
  public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIOz1sVipg6YZNAbRIg/RA8k4gF+eIqqYI5H7wfSOu8d me@home"
}

resource "aws_placement_group" "near" {
  name     = "near"
  strategy = "cluster"
}

output "subnets" { value = data.aws_subnets.default.ids }

# A volume is a record here.
resource "aws_ebs_volume" "scratch" {
  availability_zone = "us-east-1a"
  size              = 10
  type              = "gp3"
  tags              = { Name = "scratch" }
}

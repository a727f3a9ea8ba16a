define void @kernel(i32 %x) section ".nvvm.kernel" {
start:
  call void @__nvvm_cluster_dim(i32 %x, i32 1, i32 1)
  ret void
}
declare void @__nvvm_cluster_dim(i32, i32, i32)

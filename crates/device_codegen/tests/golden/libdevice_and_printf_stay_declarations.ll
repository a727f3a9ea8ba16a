@FORMAT = private unnamed_addr constant [4 x i8] c"%f\0A\00", align 1

define void @kernel(ptr %args, float %x) section ".nvvm.kernel" {
start:
  %e = call noundef float @__nv_expf(float noundef %x)
  store float %e, ptr %args, align 8
  %written = call noundef i32 @vprintf(ptr noundef nonnull @FORMAT, ptr noundef nonnull %args)
  ret void
}

declare noundef float @__nv_expf(float noundef) unnamed_addr

declare noundef i32 @vprintf(ptr noundef, ptr noundef) unnamed_addr

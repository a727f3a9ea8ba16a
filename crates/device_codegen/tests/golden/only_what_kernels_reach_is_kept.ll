@UNUSED = internal constant [4 x i8] c"gone", align 1
@USED = internal constant [4 x i8] c"kept", align 1

define void @kernel(ptr %out) section ".nvvm.kernel" {
start:
  %v = call noundef i32 @used()
  store i32 %v, ptr %out, align 4
  ret void
}

define noundef i32 @used() unnamed_addr {
start:
  %v = load i32, ptr @USED, align 4
  ret i32 %v
}

define void @unused() unnamed_addr {
start:
  call void @missing(ptr @UNUSED)
  ret void
}

declare void @missing(ptr)

; The slot that held the message names a formatter that no device has.

@alloc_text = private unnamed_addr constant [10 x i8] c"kernels.rs", align 1
@alloc_location = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_text, [16 x i8] c"\0A\00\00\00\00\00\00\00f\00\00\00I\00\00\00" }>, align 8

define void @kernel(ptr %out, i64 %i, i64 %len) section ".nvvm.kernel" {
start:
  %args = alloca [16 x i8], align 8
  %ok = icmp ult i64 %i, %len
  br i1 %ok, label %inside, label %outside

inside:
  store i64 %i, ptr %out, align 8
  ret void

outside:
  call void @llvm.lifetime.start.p0(ptr nonnull %args)
  store ptr @alloc_text, ptr %args, align 8
  %formatter = getelementptr inbounds nuw i8, ptr %args, i64 8
  store ptr @_ZN4core3fmt3num3imp52_$LT$impl$u20$core..fmt..Display$u20$for$u20$u32$GT$3fmt17h0123456789abcdefE, ptr %formatter, align 8
  call void @_ZN4core9panicking9panic_fmt17h0123456789abcdefE(ptr nonnull %args, ptr nonnull @alloc_location) #0
  unreachable
}

declare void @_ZN4core9panicking9panic_fmt17h0123456789abcdefE(ptr, ptr) unnamed_addr #0

declare i1 @"_ZN4core3fmt3num3imp52_$LT$impl$u20$core..fmt..Display$u20$for$u20$u32$GT$3fmt17h0123456789abcdefE"(ptr, ptr) unnamed_addr

declare void @llvm.lifetime.start.p0(ptr captures(none))

attributes #0 = { cold noinline noreturn nounwind }

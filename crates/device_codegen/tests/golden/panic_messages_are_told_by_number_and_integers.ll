; One block calls, whatever the panic is. Its texts stay with the host.

@alloc_file = private unnamed_addr constant [12 x i8] c"src/lib.rs\00x", align 1
@alloc_place = private unnamed_addr constant <{ ptr, [16 x i8] }> <{ ptr @alloc_file, [16 x i8] c"\0A\00\00\00\00\00\00\00f\00\00\00I\00\00\00" }>, align 8
@alloc_text = private unnamed_addr constant [18 x i8] c"too large: literal", align 1
@alloc_braces = private unnamed_addr constant [8 x i8] c"{a} \0A \C3\A9", align 1
@alloc_template = private unnamed_addr constant [31 x i8] c"\05x is \C3 \00\00(\05\00\07 and y \C0\07 {} end\00", align 1

define void @kernel(ptr %out, i64 %i, i64 %len, i32 %kind, ptr %place) section ".nvvm.kernel" {
start:
  %args = alloca [16 x i8], align 8
  %ok = icmp ult i64 %i, %len
  br i1 %ok, label %inside, label %outside

inside:
  store i64 %i, ptr %out, align 8
  switch i32 %kind, label %end [
    i32 0, label %text
    i32 1, label %template
    i32 2, label %braces
    i32 3, label %unwrap
    i32 4, label %zero
    i32 5, label %range
    i32 6, label %assertion
    i32 7, label %other
  ]

outside:
  call void @_ZN4core9panicking18panic_bounds_check17h0123456789abcdefE(i64 %i, i64 %len, ptr @alloc_place) #0
  unreachable

text:
  call void @_ZN4core9panicking9panic_fmt17h0123456789abcdefE(ptr @alloc_text, ptr inttoptr (i64 37 to ptr), ptr @alloc_place) #0
  unreachable

template:
  call void @_ZN4core9panicking9panic_fmt17h0123456789abcdefE(ptr @alloc_template, ptr %args, ptr @alloc_place) #0
  unreachable

braces:
  call void @_ZN4core9panicking5panic17h0123456789abcdefE(ptr @alloc_braces, i64 8, ptr %place) #0
  unreachable

unwrap:
  call void @_ZN4core6option13unwrap_failed17h0123456789abcdefE(ptr @alloc_place) #0
  unreachable

zero:
  call void @_ZN4core9panicking11panic_const23panic_const_div_by_zero17h0123456789abcdefE(ptr @alloc_place) #0
  unreachable

range:
  call void @_ZN4core5slice5index16slice_index_fail17h0123456789abcdefE(i64 7, i64 %i, i64 %len, ptr @alloc_place) #0
  unreachable

assertion:
  call void @_ZN4core9panicking13assert_failed17h0123456789abcdefE(i8 0, ptr %args, ptr %args, ptr @alloc_text, ptr inttoptr (i64 37 to ptr), ptr @alloc_place) #0
  unreachable

other:
  call void @_ZN4core4char7convert6failed17h0123456789abcdefE(i32 %kind) #0
  unreachable

end:
  ret void
}

declare void @_ZN4core9panicking18panic_bounds_check17h0123456789abcdefE(i64, i64, ptr) #0

declare void @_ZN4core9panicking9panic_fmt17h0123456789abcdefE(ptr, ptr, ptr) #0

declare void @_ZN4core9panicking5panic17h0123456789abcdefE(ptr, i64, ptr) #0

declare void @_ZN4core6option13unwrap_failed17h0123456789abcdefE(ptr) #0

declare void @_ZN4core9panicking11panic_const23panic_const_div_by_zero17h0123456789abcdefE(ptr) #0

declare void @_ZN4core5slice5index16slice_index_fail17h0123456789abcdefE(i64, i64, i64, ptr) #0

declare void @_ZN4core9panicking13assert_failed17h0123456789abcdefE(i8, ptr, ptr, ptr, ptr, ptr) #0

declare void @_ZN4core4char7convert6failed17h0123456789abcdefE(i32) #0

attributes #0 = { cold noinline noreturn nounwind }

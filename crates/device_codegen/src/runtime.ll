; Functions of the C library and of `core` that rustc's code calls by name, and that no GPU has.

; The difference of the first two bytes that differ; 0 if none do.
define weak i32 @memcmp(ptr %left, ptr %right, i64 %length) {
start:
  br label %test

test:
  %at = phi i64 [ 0, %start ], [ %following, %equal ]
  %ends = icmp eq i64 %at, %length
  br i1 %ends, label %end, label %compare

compare:
  %left.place = getelementptr inbounds i8, ptr %left, i64 %at
  %right.place = getelementptr inbounds i8, ptr %right, i64 %at
  %left.byte = load i8, ptr %left.place, align 1
  %right.byte = load i8, ptr %right.place, align 1
  %differ = icmp ne i8 %left.byte, %right.byte
  br i1 %differ, label %different, label %equal

equal:
  %following = add i64 %at, 1
  br label %test

different:
  %left.number = zext i8 %left.byte to i32
  %right.number = zext i8 %right.byte to i32
  %difference = sub i32 %left.number, %right.number
  ret i32 %difference

end:
  ret i32 0
}

; Zero if all bytes are equal.
define weak i32 @bcmp(ptr %left, ptr %right, i64 %length) {
start:
  %difference = call i32 @memcmp(ptr %left, ptr %right, i64 %length)
  ret i32 %difference
}

define weak i64 @strlen(ptr %text) {
start:
  br label %test

test:
  %at = phi i64 [ 0, %start ], [ %following, %more ]
  %place = getelementptr inbounds i8, ptr %text, i64 %at
  %byte = load i8, ptr %place, align 1
  %ends = icmp eq i8 %byte, 0
  br i1 %ends, label %end, label %more

more:
  %following = add i64 %at, 1
  br label %test

end:
  ret i64 %at
}

define weak ptr @memcpy(ptr %to, ptr %from, i64 %length) {
start:
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %length, i1 false)
  ret ptr %to
}

define weak ptr @memmove(ptr %to, ptr %from, i64 %length) {
start:
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %length, i1 false)
  ret ptr %to
}

define weak ptr @memset(ptr %to, i32 %value, i64 %length) {
start:
  %byte = trunc i32 %value to i8
  call void @llvm.memset.p0.i64(ptr %to, i8 %byte, i64 %length, i1 false)
  ret ptr %to
}

; libNVVM rejects libdevice's `__nv_copysign`.
define weak double @copysign(double %magnitude, double %sign) {
start:
  %both = call double @llvm.copysign.f64(double %magnitude, double %sign)
  ret double %both
}

define weak float @copysignf(float %magnitude, float %sign) {
start:
  %both = call float @llvm.copysign.f32(float %magnitude, float %sign)
  ret float %both
}

; The logarithm of the gamma function's magnitude, and its sign: negative between -1 and 0,
; between -3 and -2, and so on.
define weak double @lgamma_r(double %x, ptr %sign) {
start:
  %floor = call double @llvm.floor.f64(double %x)
  %half = fmul double %floor, 5.000000e-01
  %half.floor = call double @llvm.floor.f64(double %half)
  %is.odd = fcmp une double %half, %half.floor
  %is.whole = fcmp oeq double %x, %floor
  %is.below = fcmp olt double %x, 0.000000e+00
  %is.zero = fcmp oeq double %x, 0.000000e+00
  %bits = bitcast double %x to i64
  %has.sign = icmp slt i64 %bits, 0
  %is.minus.zero = and i1 %is.zero, %has.sign
  %is.between = xor i1 %is.whole, true
  %is.odd.below = and i1 %is.odd, %is.below
  %is.negative.below = and i1 %is.odd.below, %is.between
  %is.negative = or i1 %is.negative.below, %is.minus.zero
  %number = select i1 %is.negative, i32 -1, i32 1
  store i32 %number, ptr %sign, align 4
  %logarithm = call double @lgamma(double %x)
  ret double %logarithm
}

define weak float @lgammaf_r(float %x, ptr %sign) {
start:
  %wide = fpext float %x to double
  %unused = call double @lgamma_r(double %wide, ptr %sign)
  %logarithm = call float @lgammaf(float %x)
  ret float %logarithm
}

declare double @lgamma(double)

declare float @lgammaf(float)

declare double @llvm.copysign.f64(double, double)

declare float @llvm.copysign.f32(float, float)

declare double @llvm.floor.f64(double)

declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

; The place of the first byte that is this one, behind a 1; 0 if there is none.
define weak { i64, i64 } @"core::slice::memchr::memchr_aligned"(i8 %byte, ptr %text, i64 %length) {
start:
  br label %test

test:
  %at = phi i64 [ 0, %start ], [ %following, %next ]
  %ends = icmp eq i64 %at, %length
  br i1 %ends, label %none, label %compare

compare:
  %place = getelementptr inbounds i8, ptr %text, i64 %at
  %found = load i8, ptr %place, align 1
  %equal = icmp eq i8 %found, %byte
  br i1 %equal, label %some, label %next

next:
  %following = add i64 %at, 1
  br label %test

some:
  %result = insertvalue { i64, i64 } { i64 1, i64 0 }, i64 %at, 1
  ret { i64, i64 } %result

none:
  ret { i64, i64 } zeroinitializer
}

; That of the last byte that is this one.
define weak { i64, i64 } @"core::slice::memchr::memrchr"(i8 %byte, ptr %text, i64 %length) {
start:
  br label %test

test:
  %end = phi i64 [ %length, %start ], [ %at, %compare ]
  %ends = icmp eq i64 %end, 0
  br i1 %ends, label %none, label %compare

compare:
  %at = sub i64 %end, 1
  %place = getelementptr inbounds i8, ptr %text, i64 %at
  %found = load i8, ptr %place, align 1
  %equal = icmp eq i8 %found, %byte
  br i1 %equal, label %some, label %test

some:
  %result = insertvalue { i64, i64 } { i64 1, i64 0 }, i64 %at, 1
  ret { i64, i64 } %result

none:
  ret { i64, i64 } zeroinitializer
}

; A number near to the square root: the mean of 2^k and n / 2^k, where 2^k is nearest to it.
define weak i64 @"core::slice::sort::stable::drift::sqrt_approx"(i64 %n) {
start:
  %positive = or i64 %n, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %positive, i1 true)
  %bits = sub i64 64, %zeros
  %shift = lshr i64 %bits, 1
  %power = shl i64 1, %shift
  %quotient = lshr i64 %n, %shift
  %sum = add i64 %power, %quotient
  %mean = lshr i64 %sum, 1
  ret i64 %mean
}

declare i64 @llvm.ctlz.i64(i64, i1)

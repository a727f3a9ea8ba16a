; Strings, tables, mutable statics, and addresses of one in another.

@TEXT = private unnamed_addr constant [8 x i8] c"a\09\22q\5C\0A%\00", align 1
@NAMES = internal constant <{ ptr, [8 x i8] }> <{ ptr getelementptr inbounds (i8, ptr @TEXT, i64 1), [8 x i8] c"\03\00\00\00\00\00\00\00" }>, align 8
@COUNT = internal global [4 x i8] zeroinitializer, align 4

define void @kernel(ptr %out, i64 %i) section ".nvvm.kernel" {
start:
  %old = atomicrmw add ptr @COUNT, i32 1 monotonic, align 4
  %place = getelementptr inbounds i8, ptr @TEXT, i64 %i
  %byte = load i8, ptr %place, align 1
  store i8 %byte, ptr %out, align 1
  %name = load ptr, ptr @NAMES, align 8
  store ptr %name, ptr %out, align 8
  ret void
}
